# SPDX-License-Identifier: Apache-2.0
"""fsdp1_saved.py - FSDP1's own forms of checkpoints."""

import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.fsdp import FullyShardedDataParallel as Fsdp
from torch.distributed.fsdp import (
    FullOptimStateDictConfig, FullStateDictConfig, LocalStateDictConfig,
    ShardedOptimStateDictConfig, ShardedStateDictConfig, StateDictType,
)

try:
    from torch.distributed.checkpoint import DefaultLoadPlanner
    from torch.distributed.checkpoint.format_utils import dcp_to_torch_save
    from torch.distributed.checkpoint.optimizer import (
        load_sharded_optimizer_state_dict,
    )
    SAVED = ["save-full", "save-sharded", "save-local", "load",
             "lenient-load", "save-parts", "deferred"]
except ImportError:  # an earlier release: nothing is claimed of saves
    SAVED = []

from adapter_checkpoint import by_parameter, has_part, names_in, names_told


def state_of(life, parts):
    state = {}
    if has_part(parts, "parameters"):
        state["model"] = life.model.state_dict()
    if has_part(parts, "states"):
        state["optimizer"] = Fsdp.optim_state_dict(life.model, life.optimizer)
    return state


def with_own(life, saved):
    """optim_state_dict_to_load knows no lenience: of a name that the model
    lacks it raises KeyError, and states that are missing are dropped. So what
    the model has is saved, and what was loaded put in its place."""
    own = Fsdp.optim_state_dict(life.model, life.optimizer)
    own["state"].update((name, states)
                        for name, states in saved["state"].items()
                        if name in life.names)
    return own


class Full:
    """FULL_STATE_DICT, and the optimizer's by FSDP.optim_state_dict: gathered
    on all ranks, or on rank 0 alone, in host memory, whose optimizer's state is
    scattered again by FSDP.scatter_full_optim_state_dict."""

    def __init__(self, rank0):
        self.rank0 = rank0
        self.name = "full-rank0-offload" if rank0 else "full"

    has_names = True

    def typed(self, life, rank0):
        both = {"offload_to_cpu": rank0, "rank0_only": rank0}
        return Fsdp.state_dict_type(
            life.model, StateDictType.FULL_STATE_DICT,
            FullStateDictConfig(**both), FullOptimStateDictConfig(**both))

    def begin(self, life, folder, parts=()):
        with self.typed(life, self.rank0):
            state = state_of(life, parts)
        if life.rank == 0:
            torch.save(state, folder)
        return lambda: None

    def load(self, life, folder, parts=(), strict=True):
        state, told = torch.load(folder, weights_only=False), None
        with self.typed(life, False):
            if has_part(parts, "parameters"):
                told = life.model.load_state_dict(state["model"], strict)
            if has_part(parts, "states"):
                self.load_states(life, state["optimizer"] if strict else
                                 with_own(life, state["optimizer"]))
        return told and names_told(told)

    def load_states(self, life, optimizer):
        if self.rank0:
            state = Fsdp.scatter_full_optim_state_dict(
                optimizer if life.rank == 0 else None, life.model,
                optim=life.optimizer)
        else:
            state = Fsdp.optim_state_dict_to_load(
                life.model, life.optimizer, optimizer)
        life.optimizer.load_state_dict(state)

    def load_leniently(self, life, folder, parts=()):
        return self.load(life, folder, parts, strict=False)

    def names_in(self, life, folder):
        return names_in(torch.load(folder, weights_only=False))

    def read(self, life, folder):
        state = torch.load(folder, weights_only=False)
        return by_parameter(life, state["model"], state["optimizer"]["state"])


class Sharded:
    """SHARDED_STATE_DICT, through torch.distributed.checkpoint."""

    name = "sharded-dcp"
    has_names = True

    @staticmethod
    def typed(life):
        return Fsdp.state_dict_type(
            life.model, StateDictType.SHARDED_STATE_DICT,
            ShardedStateDictConfig(), ShardedOptimStateDictConfig())

    def begin(self, life, folder, parts=()):
        with self.typed(life):
            dcp.save(state_of(life, parts), checkpoint_id=folder)
        return lambda: None

    def load(self, life, folder, parts=(), strict=True):
        planner, told = DefaultLoadPlanner(allow_partial_load=not strict), None
        with self.typed(life):
            state = {"model": life.model.state_dict()}
            if has_part(parts, "parameters"):
                dcp.load(state, checkpoint_id=folder, planner=planner)
                told = life.model.load_state_dict(state["model"], strict)
            if has_part(parts, "states"):
                self.load_states(life, folder, state["model"], strict)
        return told and names_told(told)

    @staticmethod
    def load_states(life, folder, model, strict):
        optimizer = load_sharded_optimizer_state_dict(
            model, "optimizer", dcp.FileSystemReader(folder))["optimizer"]
        optimizer.setdefault("state", {})  # none is not saved
        life.optimizer.load_state_dict(Fsdp.optim_state_dict_to_load(
            life.model, life.optimizer,
            optimizer if strict else with_own(life, optimizer)))

    def load_leniently(self, life, folder, parts=()):
        return self.load(life, folder, parts, strict=False)

    def names_in(self, life, folder):
        whole = f"{folder}-whole-{life.rank}"
        dcp_to_torch_save(folder, whole)
        return names_in(torch.load(whole, weights_only=False))

    def read(self, life, folder):
        """Its own tool makes one file of it."""
        whole = f"{folder}-whole-{life.rank}"
        dcp_to_torch_save(folder, whole)
        state = torch.load(whole, weights_only=False)
        return by_parameter(life, state["model"], state["optimizer"]["state"])


class Local:
    """LOCAL_STATE_DICT: a file for each rank, of its shards as they are, and
    of its optimizer's states of them."""

    name = "local"
    has_names = False

    @staticmethod
    def typed(life):
        return Fsdp.state_dict_type(
            life.model, StateDictType.LOCAL_STATE_DICT, LocalStateDictConfig())

    def begin(self, life, folder, parts=()):
        with self.typed(life):
            torch.save({part: whose.state_dict() for part, whose in
                        (("parameters", life.model),
                         ("states", life.optimizer))
                        if has_part(parts, part)}, f"{folder}-{life.rank}")
        return lambda: None

    def load(self, life, folder, parts=(), strict=True):
        saved = torch.load(f"{folder}-{life.rank}", weights_only=False)
        told = None
        with self.typed(life):
            if has_part(parts, "parameters"):
                told = life.model.load_state_dict(saved["parameters"], strict)
            if has_part(parts, "states"):
                life.optimizer.load_state_dict(saved["states"])
        return told and names_told(told)

    def load_leniently(self, life, folder, parts=()):
        return self.load(life, folder, parts, strict=False)

    def read(self, life, folder):
        return {}  # it has no names of parameters

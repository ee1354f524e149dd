# SPDX-License-Identifier: Apache-2.0
"""FairScale's FullyShardedDataParallel as an engine of the suite.

On a CPU it does not run as it is: it takes CUDA streams for granted
(KeyError: 'all_gather'). There it gets streams that do nothing, as everything
is in order anyway; all else is its own.
"""

import contextlib
import copy
import warnings

import fairscale
import torch
from fairscale.nn import FullyShardedDataParallel as Fsdp

from adapter_checkpoint import by_parameter, kind_of
from adapter_graph import reshards
from adapter_memory import STAGING, owned_by_flat, states_of
from adapter_models import STATES, weights_of
from adapter_ranks import main
from adapter_torch import Engine, dtypes_of, pieces_of_flat
import capability_faults
from flat_faults import FlatFaults



# Where FairScale makes and gives back what it holds. It never runs ahead.
WATCHED = ("_lazy_init", "_rebuild_full_params", "_free_full_params",
           "_prep_grads_for_backward", "_post_backward_hook",
           "_wait_for_post_backward")
MEASURED = ["live-bytes", "late-states", "strict-memory"] if \
    all(hasattr(Fsdp, name) for name in WATCHED) else []


def owned_by(flat):
    shard = getattr(flat, "_fp32_shard", flat)  # from its first forward on
    return owned_by_flat(
        flat, shard, (STAGING, getattr(flat, "_fp16_shard", None)),
        [getattr(flat, "_full_param_padded", None)],
        lambda grad: grad.numel() == shard.numel())


class NoStream:
    """What a CPU has for a stream."""

    def wait_stream(self, other):
        pass

    def synchronize(self):
        pass


def lend_streams():
    """To a torch without CUDA, in the places where FairScale asks."""
    stream = NoStream()
    torch.cuda.current_stream = lambda device=None: stream
    torch.cuda.synchronize = lambda device=None: None
    torch.cuda.stream = lambda s: contextlib.nullcontext()
    torch.Tensor.record_stream = lambda tensor, s: None
    real = Fsdp._setup_streams

    def setup(module):
        real(module)
        for name in ("fp32_to_fp16", "all_gather", "post_backward"):
            module._streams[name] = stream  # children share the dictionary

    Fsdp._setup_streams = setup


class Copied:
    """An optimizer whose counts of steps stay tensors, without which Adam steps
    no more: gather_full_optim_state_dict makes numbers of those that it is
    handed (shown/fairscale_saves.py)."""

    def __init__(self, optimizer):
        self.state_dict = lambda: copy.deepcopy(optimizer.state_dict())


class Full:
    """state_dict of all ranks, or of rank 0 alone, and the optimizer's by
    gather_full_optim_state_dict, which rank 0 has."""

    def __init__(self, rank0):
        self.name = "full-rank0" if rank0 else "full"

    def begin(self, life, folder):
        state = (life.model.state_dict(),
                 life.model.gather_full_optim_state_dict(
                     Copied(life.optimizer)))
        if life.rank == 0:
            torch.save(state, folder)
        return lambda: None

    def load(self, life, folder):
        model, optimizer = torch.load(folder, weights_only=False)
        life.model.load_state_dict(model)
        life.optimizer.load_state_dict(
            life.model.get_shard_from_optim_state_dict(optimizer))

    def read(self, life, folder):
        """States are in the order of parameters."""
        model, optimizer = torch.load(folder, weights_only=False)
        return by_parameter(life, model,
                            dict(zip(model, optimizer["state"].values())))


class Local:
    """A file for each rank: local_state_dict, what its shards are of, and the
    optimizer's states of them. What is read is consolidated by its own tool:
    weights, and states, which lie in the same way."""

    name = "local"

    def begin(self, life, folder):
        torch.save((life.model.local_state_dict(),
                    life.model.local_metadata_dict(),
                    life.optimizer.state_dict()), f"{folder}-{life.rank}")
        return lambda: None

    def load(self, life, folder):
        model, _, optimizer = torch.load(f"{folder}-{life.rank}",
                                         weights_only=False)
        with life.model.summon_full_params():
            pass  # without, units fail that were never gathered
        life.model.load_local_state_dict(model)
        life.optimizer.load_state_dict(optimizer)

    def read(self, life, folder):
        models, metadata, optimizers = zip(*(
            torch.load(f"{folder}-{rank}", weights_only=False)
            for rank in range(life.case.ranks)))
        buffers = metadata[0]["buffer_names"]
        own = [name for name in models[0] if name not in buffers]
        wholes = [models, *(
            [{name: state[key] for name, state in
              zip(own, optimizer["state"].values())}
             for optimizer in optimizers]
            for key in STATES[life.case.optimizer])]
        wholes = [Fsdp.consolidate_shard_weights(
            whole, metadata, with_module_buffers=False) for whole in wholes]
        return {p: [whole[name] for whole in wholes]
                for name, p in life.names.items()}


class FairScale(Engine):
    """FairScale FullyShardedDataParallel."""

    name = "fairscale-fsdp"
    version = fairscale.__version__
    faults = FlatFaults(
        flats=lambda module, *_: module.params,
        free=(Fsdp, "_free_full_params"), end=(Fsdp, "_wait_for_post_backward"),
        reduce=(Fsdp, "_post_backward_hook"),
        shard=(Fsdp, "_shard_parameters_")).all() | capability_faults.OF_ALL
    claims = [
        "flat", "full-shard", "shard-grad-op", "keep-root", "reshard-root",
        "no-sync", "eval", "again", "unshard-all", "unshard-f32", "sgd",
        "momentum", "adamw", "fold-any",
        "workload-mlp", "workload-linear", "workload-gpt", "wrap-whole",
        "wrap-layer", "wrap-pair", "wrap-size", "wrap-block", "wrap-head",
        "frozen", "thaw", "shared", "recompute", "scripts",
        "workload-graph", "wrap-drawn", "graph-own-reshard",
        # Pending sums have the dtype of parameters.
        "bf16", "fp16", "precision-bf16r", "precision-bf16a", "precision-fp16",
        "save-full", "save-local", "load", "assign", "buffers",
        "groups", "groups-betas",
        *MEASURED,
    ]

    rewraps = False  # a state that is gathered wants the same units

    def form(self, kind):
        return Local() if kind == "local" else Full(kind == "full-rank0")

    def open(self, life):
        warnings.simplefilter("ignore")
        if life.device == "cpu":
            lend_streams()
        life.look.name_units(
            Fsdp, ("_rebuild_full_params", "_post_backward_hook"),
            lambda module, *_, **__: getattr(module, "unit", "none"))

    def shard(self, life, plain):
        case = life.case
        whole = case.reshards and life.fault != "no-reshard"
        rank0 = kind_of(case) == "full-rank0"
        dtypes = dtypes_of(case, 0)
        mixed = {} if dtypes is None else {
            "mixed_precision": True, "compute_dtype": dtypes[0],
            "fp32_reduce_scatter": dtypes[1] == torch.float32}

        def wrap(module, unit):
            wrapped = Fsdp(module, **mixed,
                           reshard_after_forward=reshards(case, unit, whole),
                           disable_reshard_on_root=case.keep_root,
                           bucket_cap_mb=0,  # a reduction for each unit
                           state_dict_on_rank_0_only=rank0,
                           compute_device=torch.device(life.device))
            wrapped.unit = unit
            life.groups[wrapped.process_group] = "shard"
            life.groups[wrapped.process_group_reduce_scatter] = "shard"
            return wrapped

        for unit, module in plain.unit_modules.items():
            for i, block in enumerate(plain.blocks):
                if block is module:
                    plain.blocks[i] = wrap(module, unit)
        return wrap(plain, case.modules[0]["unit"])

    def summon(self, life):
        return life.model.summon_full_params()

    def assign(self, life, values):
        with life.model.summon_full_params(), torch.no_grad():
            weights = weights_of(life.model)
            for p, value in values.items():
                weights[p].copy_(value)

    # What of it is live.

    def watch(self, memory):
        for name in WATCHED:
            setattr(Fsdp, name, memory.inside(getattr(Fsdp, name)))

    def owned(self, life):
        modules = life.model.modules() if life.model is not None else ()
        for module in modules:
            if isinstance(module, Fsdp):
                for flat in module.params:
                    yield from owned_by(flat)
        yield from states_of(life)

    @staticmethod
    def flats(life):
        return [(m.unit, m.params[0]) for m in life.model.modules()
                if isinstance(m, Fsdp) and m.params]

    def wholes(self, life):
        return [(p, flat) for unit, flat in self.flats(life)
                for p in life.case.parameters_of(unit)]

    def pieces(self, life):
        found = []
        for unit, flat in self.flats(life):
            found += pieces_of_flat(life, unit, flat)
        return sorted(found, key=lambda piece: piece.p)


if __name__ == "__main__":
    main(FairScale())

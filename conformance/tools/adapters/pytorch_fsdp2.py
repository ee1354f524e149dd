# SPDX-License-Identifier: Apache-2.0
"""PyTorch FSDP2 (fully_shard) as an engine of the suite."""

import contextlib
import inspect
import math
import sys

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp

try:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import (
        FSDPModule, MixedPrecisionPolicy, fully_shard,
    )
    from torch.distributed.fsdp._fully_shard._fsdp_param import ShardedState
    from torch.distributed.fsdp._fully_shard._fsdp_param_group import (
        FSDPParamGroup,
    )
except ImportError as lacks:
    sys.exit(f"pytorch-fsdp2: PyTorch {torch.__version__}: {lacks}")

try:
    from torch.distributed import _state_dict_utils
    from torch.distributed.checkpoint import DefaultLoadPlanner
    from torch.distributed.checkpoint.format_utils import dcp_to_torch_save
    from torch.distributed.checkpoint.state_dict import (
        StateDictOptions, get_model_state_dict, get_optimizer_state_dict,
        set_model_state_dict, set_optimizer_state_dict,
    )
    SAVED = ["save-sharded", "save-full", "load", "rank0-initial", "assign",
             "summon", "deferred", "lenient-load", "save-parts"]
except ImportError:  # an earlier release: nothing is claimed of saves
    SAVED = []

from adapter_checkpoint import (
    by_parameter, has_part, names_in, names_of, names_told,
)
from adapter_memory import (
    FULL, GRAD_FULL, GRAD_SHARD, SHARD, local, states_of,
)
from adapter_graph import reshards
from adapter_look import ASIDE
from adapter_models import STATES, ignored_in, tie_again, weights_of
from adapter_ranks import main
from adapter_script import ALL
from adapter_torch import Engine, Piece, add_casts, casts_of, dtypes_of
import capability_faults
from fsdp2_faults import FAULTS


TURN = {"sync": "set_requires_gradient_sync",
        "all-reduce": "set_requires_all_reduce",
        "reshard-after-forward": "set_reshard_after_forward",
        "reshard-after-backward": "set_reshard_after_backward"}


# Where FSDP2 makes and gives back what it holds. A release that does it
# elsewhere, or has no such depths, claims nothing of it. In a backward one unit
# is prefetched and one reduction's input waits; in a forward one gather's
# output is kept for a copy to end.
WATCHED = ("unshard", "wait_for_unshard", "reshard", "post_backward",
           "finalize_backward")
DEPTHS = ("set_modules_to_forward_prefetch", "set_modules_to_backward_prefetch",
          "set_reduce_scatter_max_input_buffers")
MEASURED = ["live-bytes", "late-states", "prefetch", "ahead-1"] if \
    all(hasattr(FSDPParamGroup, name) for name in WATCHED) and \
    all(hasattr(FSDPModule, name) for name in DEPTHS) else []


# What a release has no method, or no parameter, for is not claimed.
DIVIDES = ("set_force_sum_reduction_for_comms", "set_gradient_divide_factor")
DIVIDED = ["divide-factor", "factor-controls"] if \
    all(hasattr(FSDPModule, name) for name in DIVIDES) else []
TURNED = ["unit-controls"] if \
    all(hasattr(FSDPModule, name) for name in TURN.values()) else []
IGNORED = ["ignored", "parameter-units", "workload-lora", "wrap-ignore"] if \
    "ignored_params" in inspect.signature(fully_shard).parameters else []


def groups_of(module):
    """Parameter groups of a module: releases have one, or none, or a list."""
    state = module._get_fsdp_state()
    if hasattr(state, "_fsdp_param_groups"):
        return state._fsdp_param_groups
    return [state._fsdp_param_group] if state._fsdp_param_group else []


def policy(case, unit, casts=()):
    """Inputs and outputs are left alone, unless they are in `casts`: the models
    compute in float32."""
    float32 = (torch.float32,) * 2 if casts else (None, None)
    param, reduce = dtypes_of(case, unit) or float32
    return MixedPrecisionPolicy(
        param_dtype=param, reduce_dtype=reduce,
        output_dtype=param if "outputs" in casts else None,
        cast_forward_inputs="inputs" in casts)


def owned_by(group):
    """Of a parameter group: (kind, tensor, live bytes)."""
    for param in group.fsdp_params:
        shard, whole = param._sharded_param_data, param._unsharded_param \
            if hasattr(param, "_unsharded_param") else None
        yield SHARD, shard, shard.nbytes
        for gathered in param.all_gather_outputs:
            n = param._orig_size.numel() * gathered.itemsize
            there = gathered.untyped_storage().size() > 0 or \
                param.sharded_state == ShardedState.UNSHARDED
            yield FULL, gathered, n if there else 0
        if whole is not None and whole.grad is not None:
            yield GRAD_FULL, whole.grad, whole.grad.nbytes
        if param.sharded_param.grad is not None:
            g = local(param.sharded_param.grad)
            yield GRAD_SHARD, g, g.nbytes
    if group._partial_reduce_output is not None:
        g = group._partial_reduce_output
        yield GRAD_SHARD, g, g.nbytes


class Dcp:
    """Shards, through torch.distributed.checkpoint."""

    name = "dcp"

    has_names = True
    options = None

    def state_of(self, life, parts=()):
        state = {}
        if has_part(parts, "parameters"):
            state["model"] = get_model_state_dict(
                life.model, options=self.options)
        if has_part(parts, "states"):
            state["optimizer"] = get_optimizer_state_dict(
                life.model, life.optimizer, options=self.options)
        return state

    @staticmethod
    def take(life, state, **options):
        """What there is of it; names that are told to differ."""
        options, told = StateDictOptions(**options), None
        if "model" in state:
            told = set_model_state_dict(life.model, state["model"],
                                        options=options)
        # With full_state_dict an optimizer that has no states is an
        # AssertionError ("Expected device to be set").
        if "optimizer" in state and STATES[life.case.optimizer]:
            set_optimizer_state_dict(life.model, life.optimizer,
                                     state["optimizer"], options=options)
        return told and names_told(told)

    def begin(self, life, folder, parts=()):
        dcp.save(self.state_of(life, parts), checkpoint_id=folder)
        return lambda: None

    def load(self, life, folder, parts=()):
        state = self.state_of(life, parts)
        dcp.load(state, checkpoint_id=folder)
        self.take(life, state)

    def load_leniently(self, life, folder, parts=()):
        state = self.state_of(life, parts)
        dcp.load(state, checkpoint_id=folder,
                 planner=DefaultLoadPlanner(allow_partial_load=True))
        return self.take(life, state, strict=False)

    def names_in(self, life, folder):
        whole = f"{folder}-whole-{life.rank}"
        dcp_to_torch_save(folder, whole)
        return names_in(torch.load(whole))

    def read(self, life, folder):
        """Its own tool makes one file of it."""
        whole = f"{folder}-whole-{life.rank}"
        dcp_to_torch_save(folder, whole)
        state = torch.load(whole)
        return by_parameter(life, state["model"], state["optimizer"]["state"])


class DcpAsync(Dcp):
    """Written by a thread while training goes on: ranks agree in it about what
    each writes, which needs a group of processes that nobody else uses."""

    name = "dcp-async"

    def __init__(self):
        self.group = dist.new_group()
        ASIDE.add(self.group)

    def begin(self, life, folder, parts=()):
        return dcp.async_save(self.state_of(life, parts), checkpoint_id=folder,
                              process_group=self.group).result


class FullDict(Dcp):
    """Gathered to rank 0, which writes one file, and is the only one to read
    it. (set_state_dict, which does both, takes an empty dictionary for no
    model: ranks other than 0 do not come to its broadcast.)"""

    name = "full-broadcast"

    options = StateDictOptions(full_state_dict=True, cpu_offload=True)

    def begin(self, life, folder, parts=()):
        state = self.state_of(life, parts)
        if life.rank == 0:
            torch.save(state, folder)
        return lambda: None

    def load(self, life, folder, parts=()):
        self.send(life, folder, parts)

    def load_leniently(self, life, folder, parts=()):
        return self.send(life, folder, parts, strict=False)

    def send(self, life, folder, parts=(), **options):
        state = torch.load(folder) if life.rank == 0 else {
            what: {} for part, what in (("parameters", "model"),
                                        ("states", "optimizer"))
            if has_part(parts, part)}
        return self.take(life, state, full_state_dict=True,
                         broadcast_from_rank0=True, **options)

    def names_in(self, life, folder):
        return names_in(torch.load(folder))

    def read(self, life, folder):
        state = torch.load(folder)
        return by_parameter(life, state["model"], state["optimizer"]["state"])


class Fsdp2(Engine):
    """PyTorch FSDP2 (fully_shard)."""

    name = "pytorch-fsdp2"
    faults = FAULTS | capability_faults.OF_ALL | capability_faults.OF_FSDP2
    remembers_sync = True
    claims = [
        "per-parameter", "full-shard", "shard-grad-op", "no-shard",
        "hybrid-shard", "hybrid-shard-zero2", "keep-root", "reshard-root",
        "no-sync", "eval", "again", "unshard-all", "sgd", "groups",
        "groups-betas", "momentum", "adamw", "fold-any", "workload-mlp", "workload-linear", "workload-gpt",
        "workload-graph", "wrap-drawn", "graph-own-reshard",
        "wrap-whole", "wrap-layer", "wrap-pair", "wrap-size", "wrap-block", "wrap-head",
        # Pending sums have the dtype of reductions.
        "bf16", "fp16", "precision-bf16", "precision-bf16r", "precision-r16a",
        "precision-fp16", "precision-fp16r32", "precision-units",
        "frozen", "thaw", "shared", "recompute", "scripts", "loss-scale",
        "partial-replicas", "buffers", "dtypes", *SAVED,
        *IGNORED, *DIVIDED, *TURNED, *MEASURED,
    ]

    def add_options(self, parser):
        parser.add_argument("--divide", default="sum",
                            choices=("sum", "premultiplied"),
                            help="with another divisor ranks add up and that "
                            "is divided, or as FSDP2 does by itself, which "
                            "gloo refuses where more than one rank shards")
        parser.add_argument("--wait-for-saves", action="store_true",
                            help="dcp.save in place of dcp.async_save")
        add_casts(parser, ("inputs", "outputs"))

    def form(self, kind):
        if kind == "sharded":
            return Dcp() if self.waits else DcpAsync()
        return FullDict()

    def take_options(self, a):
        self.sums = a.divide == "sum"
        self.waits = a.wait_for_saves
        self.casts = casts_of(self, a.cast)
        if a.device == "cpu" and not hasattr(torch.cpu.Stream, "record_event"):
            sys.exit(f"{self.name}: PyTorch {torch.__version__}: on a CPU its "
                     "streams have no record_event")

    def open(self, life):
        """Process groups, before anything is looked at."""
        case = life.case
        if case.replicas > 1:
            self.mesh = init_device_mesh(
                life.device, (case.replicas, case.shards),
                mesh_dim_names=("replicate", "shard"))
            life.groups[self.mesh.get_group("replicate")] = "replicate"
            life.groups[self.mesh.get_group("shard")] = "shard"
        else:
            self.mesh = init_device_mesh(life.device, (case.shards,),
                                         mesh_dim_names=("shard",))
            life.groups[self.mesh.get_group()] = "shard"
            life.groups[None] = "shard"
        life.look.name_units(
            FSDPParamGroup, ("unshard", "post_backward"),
            lambda group, *_, **__: getattr(group, "unit", "none"))

    def shard(self, life, plain):
        case = life.case
        reshard = case.reshards and life.fault != "no-reshard"
        self.order = plain.order
        self.units = plain.unit_modules
        self.knobs = {unit: {"sync": True, "all-reduce": True}
                      for unit in self.units}
        state = {}
        if life.rank0 or life.deferred:
            state = plain.state_dict() if life.rank == 0 else {}
            plain.to("meta")
            tie_again(plain)
        ignored = {"ignored_params": ignored_in(plain)} if IGNORED else {}
        order = sorted(plain.unit_modules, reverse=True)  # the root is last
        for unit in order:
            module = plain.unit_modules[unit]
            keeps = module is plain and case.keep_root
            fully_shard(module, mesh=self.mesh,
                        mp_policy=policy(case, unit, self.casts),
                        reshard_after_forward=not keeps and
                        reshards(case, unit, reshard), **ignored)
            for group in groups_of(module):
                group.unit = unit
        if plain not in plain.unit_modules.values():
            fully_shard(plain, mesh=self.mesh, reshard_after_forward=reshard,
                        **ignored)
        if life.deferred:
            plain.to_empty(device=life.device)
            for w in plain.parameters():
                w.data.fill_(math.nan)
        if life.rank0:
            life.model = plain
            self.send_initial(life, state)
        self.run_ahead(case)
        if case.divide_factor:
            for module in plain.modules():
                if isinstance(module, FSDPModule):
                    self.divide(module, case.divide_factor)
        return plain

    def run_ahead(self, case):
        """To the depth that the case asks for; where it asks for none, as
        FSDP2 does by itself."""
        units = [self.units[unit] for unit in self.order]
        for i, module in enumerate(units):
            if case.prefetch_forward:
                module.set_modules_to_forward_prefetch(
                    units[i + 1:i + 1 + case.prefetch_forward])
            if case.prefetch_backward:
                module.set_modules_to_backward_prefetch(
                    units[max(0, i - case.prefetch_backward):i][::-1])
            if case.reduces_in_flight:
                module.set_reduce_scatter_max_input_buffers(
                    case.reduces_in_flight)

    @contextlib.contextmanager
    def sync(self, life, on):
        if on is not None:
            life.model.set_requires_gradient_sync(on)
            for knobs in self.knobs.values():
                knobs["sync"] = on
            self.set_replicas()
        yield

    def modules_of(self, life, unit):
        """What FSDP2 shards by itself: a unit, or all of them."""
        if unit != ALL:
            return {unit: self.units[unit]}
        root = {"none": life.model} if life.model not in \
            self.units.values() else {}
        return {**self.units, **root}

    def set_replicas(self):
        """Turning a unit's sync on or off does the same to its all-reduce;
        here the two are knobs of their own."""
        for unit, knobs in self.knobs.items():
            if knobs["sync"] and not knobs["all-reduce"]:
                self.units[unit].set_requires_all_reduce(False, recurse=False)

    def set_knob(self, life, unit, knob, value):
        for u, module in self.modules_of(life, unit).items():
            if knob == "divide-factor":
                self.divide(module, value)
                continue
            getattr(module, TURN[knob])(value != 0, recurse=False)
            if u in self.knobs and knob in self.knobs[u]:
                self.knobs[u][knob] = value != 0
        self.set_replicas()

    def divide(self, module, factor):
        """gloo has no PREMUL_SUM: ranks add up, and that is divided."""
        module.set_force_sum_reduction_for_comms(self.sums)
        module.set_gradient_divide_factor(factor)

    @contextlib.contextmanager
    def summon_unit(self, life, unit, rank0=False):
        """On rank 0 alone it is a state dict, gathered tensor by tensor."""
        if not rank0:
            self.units[unit].unshard()
            yield weights_of(life.model)
            self.units[unit].reshard()
            return
        module = life.model if unit is None else self.units[unit]
        names = life.names if unit is None else names_of(module)
        state = get_model_state_dict(module, options=StateDictOptions(
            full_state_dict=True, cpu_offload=True))
        yield {p: state[name] for name, p in names.items() if name in state}

    def assign(self, life, values):
        """Each rank takes its own part of whole tensors; others stay."""
        state = {name: values[p] for name, p in life.names.items()
                 if p in values}
        set_model_state_dict(life.model, state, options=StateDictOptions(
            full_state_dict=True, strict=False))

    def send_initial(self, life, state):
        """From rank 0, into a model that has been sharded without values."""
        look, real = life.look, _state_dict_utils._broadcast_tensors

        def send(whole, own, keys, *args):
            p = life.names.get(keys[0])  # none of a buffer
            look.unit = "none" if p is None else life.case.unit_of(p)
            real(whole, own, keys, *args)
            look.unit = "none"

        _state_dict_utils._broadcast_tensors = send
        life.model.to_empty(device=life.device)
        set_model_state_dict(life.model, state, options=StateDictOptions(
            full_state_dict=True, broadcast_from_rank0=True))
        _state_dict_utils._broadcast_tensors = real

    def unshard_unit(self, life, unit):
        self.units[unit].unshard()

    def reshard_unit(self, life, unit):
        self.units[unit].reshard()

    @contextlib.contextmanager
    def summon(self, life):
        units = sorted(self.units.items())
        for _, module in units:
            module.unshard()
        yield
        for _, module in units:
            module.reshard()

    def edges(self, life):
        return [(unit, m, m) for unit, m in self.units.items()]

    # What of it is live.

    def watch(self, memory):
        for method in WATCHED:
            setattr(FSDPParamGroup, method,
                    memory.inside(getattr(FSDPParamGroup, method)))

    def owned(self, life):
        """Padding is counted where the specification counts it: in shards."""
        modules = life.model.modules() if life.model is not None else ()
        for module in modules:
            if isinstance(module, FSDPModule):
                for group in groups_of(module):
                    yield from owned_by(group)
        yield from states_of(life)

    def leave(self):
        self.units = self.knobs = None

    def pieces(self, life):
        """Rows of each parameter, from what stays sharded."""
        case = life.case
        of_weight = {}
        for module in life.model.modules():
            if isinstance(module, FSDPModule):
                for group in groups_of(module):
                    for param in group.fsdp_params:
                        info = param._module_info
                        p = info.module.index[info.param_name]
                        of_weight[p] = param.sharded_param
        for p in sorted(of_weight):
            w = of_weight[p]
            rows = w.shape[0]
            block = -(-rows // case.shards)
            row = w.numel() // rows if rows else 0
            first = (life.rank % case.shards) * block * row
            yield Piece(p, first, w, lambda t: t.to_local().reshape(-1))


if __name__ == "__main__":
    main(Fsdp2())

# SPDX-License-Identifier: Apache-2.0
"""PyTorch FSDP1 (FullyShardedDataParallel) as an engine of the suite."""

import contextlib
import inspect
import math
import re
import sys
import warnings
import weakref

import torch
import torch.distributed as dist

try:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import FullyShardedDataParallel as Fsdp
    from torch.distributed.fsdp import MixedPrecision, ShardingStrategy
    from torch.distributed.fsdp import _runtime_utils, _unshard_param_utils
    from torch.distributed.fsdp import _init_utils, fully_sharded_data_parallel
    from torch.distributed.fsdp._flat_param import FlatParamHandle
    from torch.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler
except ImportError as lacks:
    sys.exit(f"pytorch-fsdp1: PyTorch {torch.__version__}: {lacks}")

from adapter_graph import reshards
from adapter_memory import FULL, STAGING, owned_by_flat, states_of
from adapter_models import ignored_in, tie_again, weights_of
from adapter_ranks import main
from adapter_torch import (
    Engine, Piece, add_casts, casts_of, dtypes_of, pieces_of_flat,
)
import capability_faults
from dtype_faults import casts_nothing, inputs_cast, outputs_cast
from flat_faults import FlatFaults
from fsdp1_saved import SAVED, Full, Local, Sharded

STRATEGY = {
    "full-shard": ShardingStrategy.FULL_SHARD,
    "shard-grad-op": ShardingStrategy.SHARD_GRAD_OP,
    "no-shard": ShardingStrategy.NO_SHARD,
    "hybrid-shard": ShardingStrategy.HYBRID_SHARD,
    "hybrid-shard-zero2": ShardingStrategy._HYBRID_SHARD_ZERO2,
}
WITHOUT_RESHARD = {"full-shard": "shard-grad-op",
                   "hybrid-shard": "hybrid-shard-zero2"}


# Earlier scalers of a loss are CUDA's alone: nothing is claimed of them.
SCALED = ["loss-scale"] if \
    "device" in inspect.signature(ShardedGradScaler).parameters else []

# Earlier releases ignore whole modules alone.
IGNORED = ["ignored", "parameter-units", "workload-lora", "wrap-ignore"] if \
    "ignored_states" in inspect.signature(Fsdp).parameters else []

# Where FSDP1 makes and gives back what it holds. In a backward one unit is
# prefetched (BACKWARD_PRE); in a forward another one, where a case asks for it.
WATCHED = ("_root_pre_forward", "_pre_forward", "_post_forward", "_unshard",
           "_reshard", "_pre_backward_hook", "_post_backward_hook",
           "_post_backward_reshard_only_hook", "_post_backward_final_callback",
           "_reduce_grad_no_shard")
MEASURED = ["live-bytes", "late-states", "prefetch", "ahead-1"] if \
    all(hasattr(_runtime_utils, name) for name in WATCHED) else []


def owned_by(handle):
    flat, sharded = handle.flat_param, handle.uses_sharded_strategy
    shard = getattr(flat, "_local_shard", flat)  # from its first forward on

    def is_reduced(grad):
        return grad.numel() == shard.numel() if sharded else \
            handle.reduced() is grad.untyped_storage()

    return owned_by_flat(
        flat, shard,
        (STAGING if sharded else FULL, getattr(flat, "_mp_shard", None)),
        [getattr(flat, name, None)
         for name in ("_full_param_padded", "_full_prec_full_param_padded")],
        is_reduced)


def policy(case, casts=()):
    """Inputs are left alone, unless they are in `casts`: the models compute in
    float32."""
    dtypes = dtypes_of(case, 0)
    if dtypes is None:
        return None
    return MixedPrecision(param_dtype=dtypes[0], reduce_dtype=dtypes[1],
                          buffer_dtype=dtypes[0],
                          cast_forward_inputs="inputs" in casts,
                          cast_root_forward_inputs="inputs" in casts)


def reduced_in_place(reduce):
    """Of what is not sharded the gradient is one thing before it is reduced
    and another behind that."""
    def call(state, handle):
        reduce(state, handle)
        handle.reduced = weakref.ref(handle.flat_param.grad.untyped_storage())

    return call


class Fsdp1(Engine):
    """PyTorch FSDP1 (FullyShardedDataParallel)."""

    # The root is never resharded after its forward: no claim reshard-root.
    name = "pytorch-fsdp1"
    faults = FlatFaults(
        flats=lambda *args: [args[-1].flat_param],  # the last is a handle
        free=(FlatParamHandle, "_free_unsharded_flat_param"),
        end=(_runtime_utils, "_post_backward_final_callback"),
        reduce=(_runtime_utils, "_reduce_grad"),
        shard=(FlatParamHandle, "shard")).all()
    faults |= {
        "inputs-cast": inputs_cast(_runtime_utils, "_pre_forward",
                                   lambda m: getattr(m._handle, "unit", None)),
        "outputs-cast": outputs_cast(_runtime_utils, "_post_forward"),
        "casts-nothing": casts_nothing(_runtime_utils,
                                       lambda _, *args, **named: (args, named)),
        **capability_faults.OF_ALL, **capability_faults.OF_FSDP1}
    claims = [
        "flat", "full-shard", "shard-grad-op", "no-shard", "hybrid-shard",
        "hybrid-shard-zero2", "keep-root", "no-sync", "eval", "again",
        "unshard-all", "unshard-f32", "sgd", "momentum", "adamw", "fold-any",
        "workload-mlp", "workload-linear",
        "workload-gpt", "workload-graph", "wrap-whole", "wrap-layer",
        "wrap-pair", "wrap-size", "wrap-block", "wrap-head", "wrap-drawn", "graph-own-reshard",
        # Pending sums have the dtype of parameters.
        "bf16", "fp16", "precision-bf16r", "precision-bf16a", "precision-r16",
        "precision-fp16",
        "frozen", "thaw", "shared", "recompute", "scripts", "groups",
        "groups-betas", *SCALED,
        "rank0-initial", "assign", "summon", "buffers", "dtypes",
        *SAVED, *IGNORED, *MEASURED,
    ]

    def open(self, life):
        """Process groups, before anything is looked at."""
        case = life.case
        warnings.simplefilter("ignore")
        self.mesh = None
        if self.strategy_of(case).startswith("hybrid"):
            self.mesh = init_device_mesh(
                life.device, (case.replicas, case.shards),
                mesh_dim_names=("replicate", "shard"))
            life.groups[self.mesh.get_group("replicate")] = "replicate"
            life.groups[self.mesh.get_group("shard")] = "shard"
        functions = ("_unshard", "_reduce_grad", "_reduce_grad_no_shard")
        life.look.name_units(
            _runtime_utils, functions,
            lambda state, handle, *_, **__: getattr(handle, "unit", "none"))
        for name in functions:  # that module has some by the same names
            if hasattr(_unshard_param_utils, name):
                setattr(_unshard_param_utils, name,
                        getattr(_runtime_utils, name))

    def tells_apart(self, case):
        """An optimizer that must tell the parameters of a unit apart, as it has
        groups or as weights decay, and a unit of which a part is frozen, or
        may be, need what they were (use_orig_params);
        others do as the option says."""
        kinds = {p["decays"] for p in case.parameters}
        units = {m["unit"] for m in case.modules if m["unit"] != "none"}
        turns = re.search(r"\b(freeze|thaw) \d", case.script_text or "")
        mixed = any(case.is_mixed(u) or turns and
                    len(case.parameters_of(u)) > 1 or
                    len({*map(case.group_of, case.parameters_of(u))}) > 1
                    for u in units)
        return self.use_orig_params == "always" or \
            self.use_orig_params == "where-needed" and (
                mixed or case.weight_decay != 0 and len(kinds) > 1)

    def strategy_of(self, case):
        return self.replicas_by if case.strategy == "no-shard" \
            else case.strategy

    @staticmethod
    def own_strategy(case, unit, name):
        """Of a unit that reshards otherwise."""
        table = WITHOUT_RESHARD
        if reshards(case, unit, name in table):
            table = {kept: whole for whole, kept in table.items()}
        return STRATEGY[table.get(name, name)]

    def add_options(self, parser):
        parser.add_argument("--use-orig-params", default="where-needed",
                            choices=("where-needed", "always", "never"))
        parser.add_argument("--replicas-by", default="no-shard",
                            choices=("no-shard", "hybrid-shard",
                                     "hybrid-shard-zero2"),
                            help="how cases of no-shard are played: with one "
                            "shard a replica these are the same")
        parser.add_argument("--tie-over-wrappers", action="store_true",
                            help="a tied head is wrapped by itself")
        parser.add_argument("--assign", default="summoned",
                            choices=("summoned", "shards"),
                            help="values are given by summon_full_params, "
                            "which gathers all parameters, or by each rank to "
                            "its own shards")
        add_casts(parser, ("inputs",))

    def form(self, kind):
        if kind == "sharded":
            return Sharded()
        return Local() if kind == "local" else Full(kind == "full-rank0")

    def take_options(self, a):
        self.use_orig_params = a.use_orig_params
        self.replicas_by = a.replicas_by
        self.tie_over_wrappers = a.tie_over_wrappers
        self.assigns_shards = a.assign == "shards"
        self.casts = casts_of(self, a.cast)

    def shard(self, life, plain):
        case = life.case
        name = self.strategy_of(case)
        self.keeps_parameters = self.tells_apart(case)
        if life.fault == "no-reshard":
            name = WITHOUT_RESHARD.get(name, name)
        if life.rank0 and life.device == "cpu":  # it wants a GPU there
            _init_utils._check_module_states_for_sync_module_states = len

        ignored = {"ignored_states": ignored_in(plain)} if IGNORED else {}

        def fill(module):
            """Of a model that begins without values."""
            module.to_empty(device=life.device, recurse=False)
            for w in module.parameters(recurse=False):
                w.data.fill_(math.nan)

        if life.deferred:
            plain.to("meta")
            tie_again(plain)

        def wrap(module, unit):
            life.look.unit = unit  # whose values are sent
            wrapped = Fsdp(module, sharding_strategy=self.own_strategy(
                               case, unit, name),
                           device_mesh=self.mesh,
                           mixed_precision=policy(case, self.casts),
                           use_orig_params=self.keeps_parameters,
                           forward_prefetch=case.prefetch_forward > 0,
                           sync_module_states=life.rank0,
                           param_init_fn=fill if life.deferred else None,
                           device_id=torch.device(life.device), **ignored)
            life.look.unit = "none"
            return wrapped

        for unit, module in plain.unit_modules.items():
            if module is plain:
                continue
            for i, block in enumerate(plain.blocks):
                if block is module:
                    plain.blocks[i] = wrap(module, unit)
                    plain.blocks[i]._handle.unit = unit
        if self.tie_over_wrappers and case.is_tied:
            plain.blocks[-1] = wrap(plain.blocks[-1], "none")
        model = wrap(plain, case.modules[0]["unit"])
        if model._handle is not None:
            model._handle.unit = case.modules[0]["unit"]
        group = model.process_group
        life.groups.setdefault(
            group, "replicate" if case.strategy == "no-shard" else "shard")
        for module in model.modules():
            if isinstance(module, Fsdp):
                life.groups.setdefault(
                    module.process_group,
                    "replicate" if case.strategy == "no-shard" else "shard")
        return model

    @staticmethod
    def pieces_kept(case, flat):
        """The parameters that were are what a rank has of them."""
        for i, (name, leaf, _) in enumerate(flat._param_infos):
            whole = flat._params[i]
            first = 0
            if case.shards > 1 and case.strategy != "no-shard":
                first = flat._shard_param_infos[i].intra_param_start_idx or 0
            yield Piece(leaf.index[name], first, whole,
                        lambda t: t.reshape(-1))

    def summon(self, life):
        return Fsdp.summon_full_params(life.model, writeback=False)

    @contextlib.contextmanager
    def summon_unit(self, life, unit, rank0=False):
        """Of a unit its own parameters, not those of units inside of it."""
        module = life.model
        if unit is not None:
            module = next(m for m in module.modules() if isinstance(m, Fsdp)
                          and getattr(m._handle, "unit", None) == unit)
        with Fsdp.summon_full_params(module, recurse=unit is None,
                                     rank0_only=rank0, writeback=False):
            yield {p: w.detach() for p, w in weights_of(life.model).items()}

    def assign(self, life, values):
        if self.assigns_shards:
            for piece in self.pieces(life):
                if piece.p in values:
                    own = piece.cut(piece.whole.detach())
                    own.copy_(values[piece.p].reshape(-1)[
                        piece.first:piece.first + own.numel()])
            return
        with Fsdp.summon_full_params(life.model, writeback=True):
            weights = weights_of(life.model)
            for p, value in values.items():
                with torch.no_grad():
                    weights[p].copy_(value)

    def scaler(self, life, **options):
        """GradScaler alone lets ranks disagree about infinities."""
        return ShardedGradScaler(life.device, process_group=dist.group.WORLD,
                                 **options)

    def edges(self, life):
        return [(m._handle.unit, m.module, m) for m in life.model.modules()
                if isinstance(m, Fsdp) and hasattr(m._handle, "unit")]

    # What of it is live.

    def watch(self, memory):
        FlatParamHandle.reduced = tuple  # of none
        _runtime_utils._reduce_grad_no_shard = reduced_in_place(
            _runtime_utils._reduce_grad_no_shard)
        for name in WATCHED:
            watched = memory.inside(getattr(_runtime_utils, name))
            for module in (_runtime_utils, _unshard_param_utils,
                           fully_sharded_data_parallel):
                if hasattr(module, name):
                    setattr(module, name, watched)

    def owned(self, life):
        modules = life.model.modules() if life.model is not None else ()
        for module in modules:
            if isinstance(module, Fsdp) and module._handle is not None:
                yield from owned_by(module._handle)
        yield from states_of(life)

    @staticmethod
    def flats(life):
        return [(m._handle.unit, m._handle.flat_param)
                for m in life.model.modules()
                if isinstance(m, Fsdp) and hasattr(m._handle, "unit")]

    def wholes(self, life):
        if self.keeps_parameters:
            return super().wholes(life)
        return [(p, flat) for unit, flat in self.flats(life)
                for p in life.case.parameters_of(unit)]

    def pieces(self, life):
        found = []
        for unit, flat in self.flats(life):
            found += (self.pieces_kept(life.case, flat)
                      if self.keeps_parameters
                      else pieces_of_flat(life, unit, flat))
        return sorted(found, key=lambda piece: piece.p)


if __name__ == "__main__":
    main(Fsdp1())

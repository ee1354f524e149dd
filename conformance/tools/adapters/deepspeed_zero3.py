# SPDX-License-Identifier: Apache-2.0
"""DeepSpeed ZeRO-3 as an engine of the suite.

It cuts each parameter into parts of its own, in the flat order, and has
no units. Where every unit is one parameter that is the flat layout; other cases
are not claimed. Gathering ahead, keeping small parameters and buckets of
several gradients are turned off by its own settings.
"""

import argparse
import contextlib
import importlib
import logging
import os

os.environ.setdefault("DS_ACCELERATOR", "cpu")

import deepspeed
import torch
import torch.distributed as dist
from deepspeed.checkpoint import ds_to_universal
from deepspeed.runtime.zero import (
    partition_parameters, partitioned_param_coordinator,
)
from deepspeed.runtime.zero.partitioned_param_coordinator import (
    PartitionedParameterCoordinator as Coordinator,
)
from deepspeed.runtime.zero.partition_parameters import ZeroParamStatus
from deepspeed.runtime.zero.stage3 import (
    DeepSpeedZeroOptimizer_Stage3 as Stage3,
)
from deepspeed.utils import (
    safe_get_local_fp32_param, safe_get_local_grad,
    safe_get_local_optimizer_state, safe_set_local_fp32_param,
)
from deepspeed.utils.zero_to_fp32 import (
    convert_zero_checkpoint_to_fp32_state_dict,
)

from adapter_checkpoint import by_parameter
from adapter_memory import (
    FULL, GRAD_FULL, GRAD_SHARD, SHARD, STAGING, states_of,
)
from adapter_models import STATES, make_optimizer, numel, weights_of
from adapter_ranks import main
from adapter_torch import Engine, Piece, dtypes_of
import capability_faults
from zero3_faults import FAULTS


# Where ZeRO-3 makes and gives back what it holds. It runs ahead where its
# buckets say so, which are turned off.
WATCHED = ((Coordinator, "fetch_sub_module"),
           (Coordinator, "release_sub_module"),
           (Stage3, "backward_prologue"),
           (Stage3, "reduce_ready_partitions_and_remove_grads"),
           (Stage3, "independent_gradient_partition_epilogue"),
           (Stage3, "backward_epilogue"),
           (Stage3, "step"))
MEASURED = ["live-bytes", "late-states"] if \
    all(hasattr(owner, name) for owner, name in WATCHED) else []


def import_all():
    """What DeepSpeed imports while it begins, a minute for what is hardly ever
    used (an optimizer that it compiles), and asks a compiler."""
    for module in ("runtime.zero.muon.muon_optimizer",
                   "runtime.superoffload.superoffload_stage3",
                   "module_inject.auto_ep_layer", "comm.mori"):
        with contextlib.suppress(ImportError):  # of another release
            importlib.import_module("deepspeed." + module)
    return deepspeed.ops.__compatible_ops__


def owned_by(stage3, weights):
    """(kind, tensor, live bytes). Masters are the shards themselves, unless
    those have 16 bits; gradients have a buffer at all times, which is live from
    the first reduction on until a step."""
    shards = [w.ds_tensor for w in weights]
    storages = {shard.untyped_storage() for shard in shards}
    masters = [w for w in stage3.fp32_partitioned_groups_flat
               if w.untyped_storage() not in storages]
    for shard in shards + masters:
        yield SHARD, shard, shard.nbytes
    for w in weights:
        if w.ds_status == ZeroParamStatus.AVAILABLE:
            yield FULL, w.data, w.nbytes
        if w.grad is not None:
            yield GRAD_FULL, w.grad, w.grad.nbytes
    buffer = stage3.grad_partitions_flat_buffer
    yield GRAD_SHARD, buffer, buffer.nbytes if stage3.has_gradients else 0
    for w in stage3.fp32_partitioned_groups_flat:
        if w.grad is not None:
            yield GRAD_SHARD, w.grad, w.grad.nbytes


def numbers_of(*owners):
    """What they know of a step (a flag, a norm) is allocated, and no state."""
    for owner in owners:
        for value in vars(owner).values():
            if isinstance(value, torch.Tensor) and value.numel() == 1:
                yield STAGING, value, 0


def follow_gradients():
    Stage3.has_gradients = False
    for name, value in (("partition_grads", True), ("step", False),
                        ("zero_grad", False)):

        def call(self, *args, real=getattr(Stage3, name), value=value, **named):
            result = real(self, *args, **named)
            self.has_gradients = value
            return result

        setattr(Stage3, name, call)


def leave_out_agreements(look):
    """In which ranks compare what they do, and the norm of a step. Cases that
    play no script show them (comm.nothing-else); in scripts nothing else would
    be found."""

    def unseen(owner, name):
        real = getattr(owner, name)

        def call(*args, **kwargs):
            before, look.inside = look.inside, True
            try:
                return real(*args, **kwargs)
            finally:
                look.inside = before

        setattr(owner, name, call)

    for owner, name in ((partitioned_param_coordinator,
                         "assert_ints_same_as_other_ranks"),
                        (partition_parameters,
                         "assert_ints_same_as_other_ranks"),
                        (Stage3, "step")):
        unseen(owner, name)


class Part(Piece):
    """A rank's part of a parameter, as DeepSpeed's own functions show it."""

    def values(self, life, stage):
        if stage == "reduced":
            values = safe_get_local_grad(self.whole) \
                if life.engine.has_gradients else None
        elif stage[-1] in "01":  # state0, loaded1
            key = STATES[life.case.optimizer][int(stage[-1])]
            try:
                values = safe_get_local_optimizer_state(self.whole, key)
            except KeyError:  # torch makes them later
                values = torch.zeros_like(self.whole.ds_tensor)
        elif self.whole.requires_grad:
            values = safe_get_local_fp32_param(self.whole)
        else:
            values = self.whole.ds_tensor  # what is frozen has no master
        return None if values is None else self.cut(values.detach())


class Step:
    """DeepSpeed steps and forgets the gradients in one call, which fails where
    there are none. What can be read of them stays until they are dropped."""

    def __init__(self, zero3):
        self.zero3 = zero3
        self.param_groups = zero3.inner.optimizer.param_groups
        self.state = zero3.inner.optimizer.state

    def step(self):
        gradients = self.zero3.inner.averaged_gradients.values()
        if any(g is not None for g in gradients):
            self.zero3.engine.step()

    def zero_grad(self):
        self.zero3.has_gradients = False
        self.zero3.inner.zero_grad()


DTYPE = {torch.float32: "fp32", torch.bfloat16: "bf16"}


def precision_of(case):
    """What is sent, and what sums of shards have. Parameters and gradients are
    bf16: float16 it does not play on a CPU."""
    dtypes = dtypes_of(case, 0)
    if dtypes is None:
        return {}
    return {"bf16": {"enabled": True},
            "communication_data_type": DTYPE[dtypes[1]],
            "data_types": {"grad_accum_dtype": "fp32"}}


def make_universal(native, folder):
    """By its own tool: a folder for each parameter that is trained, and in it
    a file of its values and of each moment."""
    ds_to_universal.main(argparse.Namespace(
        input_folder=native, output_folder=folder, num_extract_workers=1,
        num_merge_workers=1, keep_temp_folder=False, strict=True,
        inject_missing_state=False))


def read_universal(life, folder):
    found = {}
    for name, p in life.names.items():
        path = os.path.join(folder, "zero", name)
        if os.path.isdir(path):
            found[p] = [torch.load(os.path.join(path, f"{key}.pt"))
                        for key in ("fp32", *STATES["adamw"])]
    return found


class Native:
    """Its own: a file of the model and one of the optimizer for each rank. What
    is read of it are the consolidated float32 weights that its own tool makes,
    and moments, which these have not, from what another tool makes."""

    name = "native"

    def begin(self, life, folder):
        life.model.save_checkpoint(folder, tag="step")
        return lambda: None

    def load(self, life, folder):
        life.model.load_checkpoint(folder, tag="step")

    def read(self, life, folder):
        whole = f"{folder}-whole-{life.rank}"
        convert_zero_checkpoint_to_fp32_state_dict(
            folder, whole, max_shard_size=None, tag="step")
        weights = by_parameter(life, torch.load(
            os.path.join(whole, "pytorch_model.bin")), {})
        make_universal(os.path.join(folder, "step"), f"{whole}-universal")
        moments = read_universal(life, f"{whole}-universal")
        return {p: own + moments.get(p, [])[1:] for p, own in weights.items()}


class Universal(Native):
    """What rank 0 makes universal of the native one; it knows no world."""

    name = "universal"

    def begin(self, life, folder):
        super().begin(life, folder)
        if life.rank == 0:
            make_universal(os.path.join(folder, "step"),
                           os.path.join(folder, "universal"))
        dist.barrier()
        return lambda: None

    def load(self, life, folder):
        """A script may load both forms; what is said of it is of all loads."""
        said = life.model._config.load_universal_checkpoint
        life.model._config.load_universal_checkpoint = True
        life.model.load_checkpoint(folder, tag="universal")
        life.model._config.load_universal_checkpoint = said

    def read(self, life, folder):
        return read_universal(life, os.path.join(folder, "universal"))


class Zero3(Engine):
    """DeepSpeed ZeRO-3."""

    name = "deepspeed-zero3"
    version = deepspeed.__version__
    faults = FAULTS | capability_faults.OF_ALL
    claims = [
        "flat", "full-shard", "eval", "again", "sgd", "momentum", "adamw",
        "fold-any", "workload-mlp", "workload-linear", "wrap-layer",
        "frozen", "recompute",
        "bf16", "precision-bf16", "precision-bf16r",
        "save-sharded", "save-full", "load", "buffers",
        "scripts", "step-drops", "unshard-all", "assign", "rank0-initial",
        "groups", "groups-betas",
        *MEASURED,
    ]
    engine = inner = weights = None
    has_gradients = False  # that can be read

    def prepare(self):
        import_all()

    def form(self, kind):
        """What another world loads is universal."""
        return Universal() if kind.startswith("full") or self.through \
            else Native()

    def open(self, life):
        deepspeed.utils.logger.setLevel(logging.ERROR)
        os.environ["LOCAL_RANK"] = str(life.rank)
        # It would compile collectives for inference, which no case uses.
        deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False

        def unit_of(_, params, *__):
            units = {p.unit for p in params}
            return units.pop() if len(units) == 1 else "none"

        life.look.name_units(
            Coordinator,
            ["_PartitionedParameterCoordinator__all_gather_params"],
            unit_of)
        life.look.name_units(
            Stage3, ["_DeepSpeedZeroOptimizer_Stage3__avg_scatter_grads"],
            unit_of)
        if life.scripted:
            leave_out_agreements(life.look)

    def shard(self, life, plain):
        case = life.case
        samples = next((values.shape[0] for values in
                        case.batch(0, 0, life.rank).values()), 1)
        keep = life.fault == "no-reshard"
        universal = self.through > 0 or case.scenario == "resume-full"
        passes = 1 if life.scripted else len(case.sync)
        inner = make_optimizer(case, plain, plain.parameters())
        self.weights = weights_of(plain)
        for p, w in self.weights.items():
            w.unit = case.unit_of(p)
        self.engine, self.inner, _, _ = deepspeed.initialize(
            model=plain, optimizer=inner, dist_init_required=False, config={
                "train_micro_batch_size_per_gpu": samples,
                "gradient_accumulation_steps": passes,
                "zero_allow_untested_optimizer": True,
                "zero_force_ds_cpu_optimizer": False,
                "gradient_clipping": 0.0,
                "checkpoint": {"load_universal": universal},
                **precision_of(case),
                "zero_optimization": {
                    "stage": 3,
                    "overlap_comm": False,
                    "contiguous_gradients": False,
                    "reduce_bucket_size": 1,
                    "stage3_prefetch_bucket_size": 0,
                    "stage3_param_persistence_threshold": 0,
                    "stage3_max_live_parameters": int(1e9) if keep else 0,
                    "stage3_max_reuse_distance": int(1e9) if keep else 0,
                }})
        for w in self.weights.values():
            life.groups[w.ds_process_group] = "shard"
        if dtypes_of(case, 0) is not None:
            self.fill_masters(life)
        if life.scripted:  # whatever came before it, a step steps
            self.engine.set_gradient_accumulation_boundary(True)
        return self.engine

    def fill_masters(self, life):
        """DeepSpeed casts a model to 16 bits first, and makes its float32
        masters of that. They are given what the model had, by its own
        function."""
        weights = life.case.weights
        self.assign(life, {
            p: torch.from_numpy(weights[life.case.parameters[p]["name"]])
            for p in self.weights})

    def assign(self, life, values):
        """To each rank its own part of what is whole. DeepSpeed's function
        is of the master alone, not of what is gathered."""
        for piece in self.pieces(life):
            if piece.p in values:
                part = torch.zeros(piece.whole.ds_tensor.numel())
                own = values[piece.p].reshape(-1)[piece.first:][:part.numel()]
                part[:own.numel()] = own
                piece.whole.ds_tensor.data.copy_(part)
                safe_set_local_fp32_param(piece.whole, part)

    @contextlib.contextmanager
    def summon(self, life):
        """One after the other, as units are."""
        with contextlib.ExitStack() as opened:
            for w in self.weights.values():
                life.look.unit = w.unit
                opened.enter_context(deepspeed.zero.GatheredParameters(w))
                life.look.unit = "none"
            yield

    def optimizer(self, life):
        return Step(self)

    @contextlib.contextmanager
    def sync(self, life, on):
        yield

    def backward(self, life, loss):
        life.model.backward(loss, scale_wrt_gas=False)
        self.has_gradients = True
        if not life.scripted and \
                life.look.microbatch + 1 < len(life.case.sync):
            life.model.step()  # it counts microbatches by these

    # What of it is live.

    def watch(self, memory):
        follow_gradients()
        for owner, name in WATCHED:
            setattr(owner, name, memory.inside(getattr(owner, name)))

    def owned(self, life):
        if life.model is not None:
            yield from owned_by(self.inner, self.weights.values())
            yield from numbers_of(self.inner, self.engine)
            yield from states_of(life, self.inner.optimizer)

    def leave(self):
        if self.engine is not None:
            self.engine.destroy()
        self.has_gradients = False
        self.engine = self.inner = self.weights = None

    def pieces(self, life):
        case = life.case
        for p, w in sorted(self.weights.items()):
            part = -(-numel(case, p) // case.shards)
            first = life.rank * part
            n = max(0, min(part, numel(case, p) - first))
            yield Part(p, first, w, lambda t, n=n: t.reshape(-1)[:n])


if __name__ == "__main__":
    main(Zero3())

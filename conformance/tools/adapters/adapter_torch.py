# SPDX-License-Identifier: Apache-2.0
"""adapter_torch.py - what the adapters for PyTorch share.

An engine (pytorch_*.py) shards a model, says what of it a rank owns, and
names its claims. Here are the scenarios, what is looked at while they run, and
the processes; the models are in adapter_models.py.
"""

import argparse
import contextlib
import json
import multiprocessing
import os
import signal
import sys
import tempfile
import time
import traceback

import torch
import torch.distributed as dist

from adapter_job import Case, RankRecord, read_json, write_case, write_text
from adapter_models import (
    STATES, Model, loss_of, make_optimizer, numel, weights_of,
)

SECONDS_A_CASE = 180
INTERNAL = -11  # status of a rank that raised an exception
FAULTS = ("no-average", "same-batch", "no-sync-ignored", "bf16-reduce",
          "no-reshard", "stale-weight")


# ---- What is looked at ------------------------------------------------------


def values_of(t):
    """What a record takes of a tensor: numpy has no bfloat16."""
    t = t.detach().cpu().clone()
    return t.view(torch.uint16).numpy() if t.dtype == torch.bfloat16 \
        else t.numpy()


class Look:
    """The eyes of the record: collectives, weights as the forward sees them,
    gradients as the model leaves them."""

    def __init__(self, case, record, fault, groups):
        self.case, self.record, self.fault = case, record, fault
        self.groups = groups  # process group -> "shard", "replicate"
        self.unit = "none"  # whose collective comes next
        self.step = self.microbatch = 0
        self.recording = False
        self.training = False
        self.inside = False  # a collective that is made of others
        self.handles = []
        self.stale = {}

    def weight(self, p, w):
        """Parameter p in a forward; what the model is to compute with. In
        mixed precision that is a view, so that its gradient is seen before
        anybody casts it: FSDP2 has leaves cast theirs to the dtype that
        pending sums have (torch's grad_dtype)."""
        if self.case.precision != "f32":
            w = w.view_as(w)
        if self.training and self.fault == "stale-weight" and p == 0:
            self.go_stale(p, w)
        if not (self.recording and self.training):
            return w
        if self.microbatch == 0:
            self.record.tensor("unsharded", self.step, 0, p, 0,
                               values_of(w))
        step, microbatch = self.step, self.microbatch
        self.handles.append(w.register_hook(
            lambda g: self.record.tensor("local-gradient", step, microbatch, p,
                                         0, values_of(g))))
        return w

    def go_stale(self, p, w):
        """The second step's forward has the weights of the first."""
        if self.step == 0:
            self.stale[p] = w.detach().clone()
        elif self.step == 1:
            with torch.no_grad():
                w.data.copy_(self.stale[p])

    def end_pass(self):
        for handle in self.handles:
            handle.remove()
        self.handles = []

    def saw(self, kind, group, n, dtype):
        dim = self.groups.get(group, "world")
        name = {torch.float32: "f32", torch.bfloat16: "bf16",
                torch.float16: "f16", torch.int32: "i32", torch.int64: "i64",
                torch.uint8: "u8"}.get(dtype, "none")
        self.record.collective(kind, dim, name, self.unit, n)

    def spoil_input(self, t):
        if self.fault == "bf16-reduce":
            t.copy_(t.to(torch.bfloat16).to(t.dtype))

    def spoil_output(self, t, group):
        if self.fault == "no-average":
            t.mul_(dist.get_world_size(group))


def watch_collectives(look):
    """Puts a look in front of torch.distributed's collectives, under all names
    that versions of it have. Asynchronous ones that are spoiled are waited
    for."""

    def replaced(name, kind, pick):
        real = getattr(dist, name, None)
        if real is None:
            return

        def call(*args, **kwargs):
            if look.inside:
                return real(*args, **kwargs)
            group = kwargs.get("group")
            output, source, n = pick(args, kwargs)
            look.saw(kind, group, n, source.dtype)
            look.inside = True
            try:
                if kind != "all-gather":
                    look.spoil_input(source)
                work = real(*args, **kwargs)
                if kind != "all-gather" and look.fault == "no-average":
                    if work is not None:
                        work.wait()
                    look.spoil_output(output, group)
                return work
            finally:
                look.inside = False

        setattr(dist, name, call)

    def argument(args, kwargs, i, *names):
        for name in names:
            if name in kwargs:
                return kwargs[name]
        return args[i]

    def gather(args, kwargs):
        source = argument(args, kwargs, 1, "input_tensor", "input", "tensor")
        return None, source, source.numel()

    def scatter(args, kwargs):
        output = argument(args, kwargs, 0, "output", "output_tensor")
        source = argument(args, kwargs, 1, "input", "input_tensor")
        return output, source, output.numel()

    def reduce(args, kwargs):
        tensor = argument(args, kwargs, 0, "tensor")
        return tensor, tensor, tensor.numel()

    for name in ("all_gather_single", "all_gather_into_tensor", "all_gather",
                 "_all_gather_base"):
        replaced(name, "all-gather", gather)
    for name in ("reduce_scatter_single", "reduce_scatter_tensor",
                 "_reduce_scatter_base"):
        replaced(name, "reduce-scatter", scatter)
    replaced("all_reduce", "all-reduce", reduce)


# ---- A rank -----------------------------------------------------------------


F32, BF16, F16 = torch.float32, torch.bfloat16, torch.float16

# Parameters (and their gradients) and reductions of a precision, as the
# specification names it; what pending sums have is the engine's own, and which
# precisions it can play says it (claims precision-W).
PRECISION = {"bf16": (BF16, F32), "bf16r": (BF16, BF16), "bf16a": (BF16, F32),
             "r16": (F32, BF16), "r16a": (F32, BF16), "fp16": (F16, F16),
             "fp16r32": (F16, F32)}


def dtypes_of(case, unit):
    """Of a unit's parameters and reductions; None: all float32."""
    name = case.precision
    if name == "units":
        name = (("bf16", "f32", "fp16")[unit % 3] if unit != "none"
                else "f32")
    return PRECISION.get(name)


class Engine:
    """What engines have in common; an engine has open, shard, pieces, too."""

    version = None  # PyTorch's

    def optimizer(self, life):
        return make_optimizer(life.case, life.model, life.model.parameters())

    @contextlib.contextmanager
    def sync(self, life, on):
        """A backward that reduces, or not."""
        with contextlib.nullcontext() if on else life.model.no_sync():
            yield

    def backward(self, life, loss):
        loss.backward()


class Piece:
    """Elements [first, ...) of parameter p, which this rank owns. `whole` is
    what an optimizer knows; cut() picks the piece of it, or of its like."""

    def __init__(self, p, first, whole, cut):
        self.p, self.first, self.whole, self.cut = p, first, whole, cut

    def values(self, life, stage):
        """Of a stage of the record; None: there are none (yet)."""
        values = self.whole
        if stage == "reduced":
            values = self.whole.grad
        elif stage.startswith("state"):
            state = life.optimizer.state.get(self.whole, {})
            values = state.get(STATES[life.case.optimizer][int(stage[-1])])
        return None if values is None else self.cut(values.detach())


class Rank:
    """Lives a case."""

    def __init__(self, engine, case, rank, device, fault):
        self.engine, self.case, self.rank = engine, case, rank
        self.device, self.fault = device, fault
        self.record = RankRecord(rank)
        self.groups = {}
        self.look = Look(case, self.record, fault, self.groups)

    def show(self, stage, step):
        for piece in self.engine.pieces(self):
            values = piece.values(self, stage)
            if values is not None:
                self.record.tensor(stage, step, 0, piece.p, piece.first,
                                   values_of(values))

    def batch(self, step, microbatch):
        rank = self.rank
        if self.fault == "same-batch" and rank == self.case.ranks - 1:
            rank = 0
        return self.case.batch(step, microbatch, rank)

    def microbatch(self, step, b):
        case, look = self.case, self.look
        look.step, look.microbatch, look.training = step, b, True
        sync = case.sync[b] == "s" or self.fault == "no-sync-ignored"
        with self.engine.sync(self, sync):
            loss = loss_of(case, self.model, self.batch(step, b), self.device)
            self.engine.backward(self, loss)
        look.end_pass()
        look.training = False
        self.record.losses.append(loss.item())

    def evaluate(self, step):
        self.model.eval()
        with torch.no_grad():
            loss = loss_of(self.case, self.model, self.batch(step + 1, 0),
                           self.device)
        self.model.train()
        self.record.other_losses.append(loss.item())

    def one_step(self, step):
        case = self.case
        self.look.recording = step < case.recorded_steps
        for b in range(len(case.sync)):
            self.microbatch(step, b)
        if self.look.recording:
            self.show("reduced", step)
            self.show("before", step)
        self.optimizer.step()
        if self.look.recording:
            self.show("after", step)
            for i in range(len(STATES[case.optimizer])):
                self.show(f"state{i}", step)
        self.optimizer.zero_grad()
        if case.scenario == "eval":
            self.evaluate(step)
        self.record.step_sequences.append(self.record.mark())

    def summon(self):
        """The whole model at once, outside of a pass."""
        with self.engine.summon(self):
            for p, w in sorted(weights_of(self.model).items()):
                self.record.tensor("summoned", self.case.steps, 0, p, 0,
                                   values_of(w))

    def train(self):
        case, record = self.case, self.record
        plain = Model(case, self.look).to(self.device)
        self.model = self.engine.shard(self, plain)
        self.optimizer = self.engine.optimizer(self)
        record.shard_sequence = record.mark()
        if case.recorded_steps:
            self.show("initial", 0)
        for step in range(case.steps):
            self.one_step(step)
        if case.scenario == "summon":
            self.summon()
        if case.recorded_steps:
            self.show("final", case.steps)
        record.end_sequence = record.mark()

    def live(self):
        self.train()
        if self.case.scenario == "again":
            self.record.forget()
            self.train()


def cut_flat(first, n, shape=None):
    del shape
    return lambda t: t.reshape(-1)[first:first + n]


def pieces_of_flat(life, unit, flat):
    """A unit's parameters lie one behind the other in its flat one, of which
    this rank has an equal part."""
    case = life.case
    chunk = flat.numel()
    begin = (life.rank % case.shards) * chunk if case.shards > 1 else 0
    at = 0
    for p in case.parameters_of(unit):
        n = numel(case, p)
        first, last = max(at, begin), min(at + n, begin + chunk)
        if first < last:
            yield Piece(p, first - at, flat,
                        cut_flat(first - begin, last - first))
        at += n


# ---- Processes --------------------------------------------------------------


def rank_process(engine, case, rank, folder, store, device, fault):
    began = time.monotonic()
    torch.set_num_threads(1)
    status, message, life = 0, "", None
    try:
        if device == "cuda":
            torch.cuda.set_device(rank % torch.cuda.device_count())
            torch.backends.cuda.matmul.allow_tf32 = False
        dist.init_process_group("nccl" if device == "cuda" else "gloo",
                                init_method=f"file://{store}", rank=rank,
                                world_size=case.ranks)
        life = Rank(engine, case, rank, device, fault)
        engine.open(life)
        watch_collectives(life.look)
        life.live()
    except Exception:  # whatever an engine raises is a record of it
        traceback.print_exc()
        status, message = INTERNAL, traceback.format_exc(limit=-1)[-180:]
    record = life.record if life else RankRecord(rank)
    record.write(folder, status, message.replace("\n", " "),
                 time.monotonic() - began)
    with open(os.path.join(folder, f"entered-{rank}"), "w") as f:
        json.dump([record.entered, record.last], f)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0 if status == 0 else 1)  # gloo's threads would be waited for


def end_of(process, folder, rank):
    code = process.exitcode
    end = {"end": "returned", "exit_status": 0, "signal": 0, "collectives": 0,
           "in_collective": False, "last_kind": "all-gather",
           "last_unit": "none"}
    note = os.path.join(folder, f"entered-{rank}")
    if os.path.exists(note):
        entered, last = read_json(note)
        os.unlink(note)
        end["collectives"] = entered
        if last:
            end["last_kind"], end["last_unit"] = last
        end["exit_status"] = 0 if code == 0 else INTERNAL
    elif code is None or code == -signal.SIGKILL:
        end["end"] = "timed-out"
    elif code < 0:
        end["end"], end["signal"] = "signalled", -code
    else:
        end["end"], end["exit_status"] = "exited", code
    return end


def run_case(engine, case, records, device, fault):
    folder = os.path.join(records, case.id)
    os.makedirs(folder, exist_ok=True)
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as scratch:
        store = os.path.join(scratch, "store")
        ranks = [context.Process(target=rank_process,
                                 args=(engine, case, r, folder, store, device,
                                       fault))
                 for r in range(case.ranks)]
        for r in ranks:
            r.start()
        until = time.monotonic() + SECONDS_A_CASE
        for r in ranks:
            r.join(max(0.0, until - time.monotonic()))
        for r in ranks:
            if r.is_alive():
                r.kill()
                r.join()
        write_case(folder, case, engine,
                   [end_of(p, folder, i) for i, p in enumerate(ranks)])


def main(engine):
    parser = argparse.ArgumentParser(description=engine.__doc__)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--fault", choices=FAULTS,
                        help="be wrong in this way, for a test of the suite")
    parser.add_argument("verb", choices=("claims", "run"))
    parser.add_argument("job")
    a = parser.parse_args()
    engine.version = engine.version or torch.__version__.split("+")[0]
    if a.verb == "claims":
        write_text(os.path.join(a.job, "claims.json"), json.dumps({
            "version": 1, "engine": engine.name,
            "engine_version": engine.version, "claims": engine.claims}))
        return
    job = read_json(os.path.join(a.job, "cases.json"))
    for name in job["cases"]:
        run_case(engine, Case(os.path.join(a.job, name)), job["records"],
                 a.device, a.fault)

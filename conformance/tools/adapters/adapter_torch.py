# SPDX-License-Identifier: Apache-2.0
"""adapter_torch.py - what the adapters for PyTorch share.

An engine (pytorch_*.py) shards a model, says what of it a rank owns, and
names its claims. Here are the scenarios, what is looked at while they run, and
the processes; the models are in adapter_models.py.
"""

import argparse
import contextlib
import gc
import importlib
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
from adapter_memory import Memory, Unmeasured
from adapter_models import (
    STATES, Model, loss_of, make_optimizer, numel, weights_of,
)
from adapter_script import ALL, edited, read_script

SECONDS_A_CASE = 180
INTERNAL = -11  # status of a rank that raised an exception
FAULTS = ("no-average", "same-batch", "no-sync-ignored", "bf16-reduce",
          "no-reshard", "stale-weight")


# ---- What is looked at ------------------------------------------------------


def values_of(t):
    """What a record takes of a tensor: numpy has no bfloat16."""
    t = t.detach().cpu().clone()
    return t.view(torch.int16).numpy().view("uint16") \
        if t.dtype == torch.bfloat16 else t.numpy()


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
        self.agreeing = False
        self.edits = []  # what a script makes of a pass's local gradients
        # Gradients are seen before anybody casts them (FSDP2 has leaves cast
        # theirs to the dtype that pending sums have, torch's grad_dtype), and
        # each use of a tied parameter by itself: at a view.
        self.at_views = case.precision != "f32" or case.is_tied

    def weight(self, p, w):
        """Parameter p in a forward; what the model is to compute with."""
        if self.at_views or self.edits:
            w = w.view_as(w)
        if self.training and self.fault == "stale-weight" and p == 0:
            self.go_stale(p, w)
        if not self.training:
            return w
        if self.recording and self.microbatch == 0:
            self.saw_weight(p, w)
        if w.requires_grad and (self.recording or self.edits):
            self.follow(p, w)
        return w

    def saw_weight(self, p, w):
        """In the forward, not where that is computed again."""
        name = f"unsharded.{self.step}.0.{p}#0"
        if name not in self.record.tensors:
            self.record.tensor("unsharded", self.step, 0, p, 0, values_of(w))

    def follow(self, p, w):
        """What comes as its gradient in the backward of this pass."""
        step, microbatch, edits = self.step, self.microbatch, self.edits
        recording = self.recording

        def saw(g):
            g = edited(g, edits, self.record.rank, self.case.ranks, p,
                       len(self.case.parameters))
            if recording:
                self.record.tensor("local-gradient", step, microbatch, p, 0,
                                   values_of(g))
            return g if edits else None

        self.handles.append(w.register_hook(saw))

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

    @contextlib.contextmanager
    def agreement(self):
        """What is said here in at most 4 numbers is no collective of a unit."""
        self.agreeing = True
        yield
        self.agreeing = False

    def saw(self, kind, group, n, dtype):
        if self.agreeing and kind == "all-reduce" and n <= 4:
            return
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
    faults = {}  # of its own: what makes it wrong

    def add_options(self, parser):
        """Of its own, of the command line."""

    def take_options(self, a):
        """What was given of them."""

    def optimizer(self, life):
        return make_optimizer(life.case, life.model, life.model.parameters())

    @contextlib.contextmanager
    def sync(self, life, on):
        """A backward that reduces, or not."""
        with contextlib.nullcontext() if on else life.model.no_sync():
            yield

    def backward(self, life, loss):
        loss.backward()

    # Of engines that claim live-bytes.

    def watch(self, memory):
        """What an engine makes is its own: before anything is sharded."""

    def owned(self, life):
        """(kind, tensor, live bytes) of all that it owns."""
        return ()

    def leave(self):
        """Forgets the model."""

    # What scripts do, of engines that claim it.

    def scaler(self, life, **options):
        """Torch's, of a loss."""
        return torch.amp.GradScaler(life.device, **options)

    def train(self, life, parameters, on):
        """These are trained from now on, or not. Torch's optimizers keep the
        states of what is frozen; the specification drops them, and so does
        whoever drives torch."""
        for piece in self.pieces(life):
            if piece.p in parameters:
                piece.whole.requires_grad_(on)
                if not on:
                    life.optimizer.state.pop(piece.whole, None)


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
            if values is None and life.scripted and self.whole.requires_grad:
                values = torch.zeros_like(self.whole)  # torch makes them later
        return None if values is None else self.cut(values.detach())


class Rank:
    """Lives a case."""

    def __init__(self, engine, case, rank, device, fault):
        self.engine, self.case, self.rank = engine, case, rank
        self.device, self.fault = device, fault
        self.record = RankRecord(rank)
        self.groups = {}
        self.look = Look(case, self.record, fault, self.groups)
        self.scripted = case.script_text is not None
        self.memory = Unmeasured()
        if "live-bytes" in engine.claims and device == "cpu":
            self.memory = Memory(lambda: engine.owned(self))
        self.model = self.optimizer = None

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

    def forward_backward(self, step, b, sync, scale=lambda loss: loss):
        """sync None: as it was said last."""
        case, look = self.case, self.look
        look.step, look.microbatch, look.training = step, b, True
        with contextlib.nullcontext() if sync is None \
                else self.engine.sync(self, sync):
            loss = loss_of(case, self.model, self.batch(step, b), self.device)
            if loss.requires_grad:
                self.engine.backward(self, scale(loss))
        look.end_pass()
        look.training = False
        return loss.item()

    def microbatch(self, step, b):
        sync = self.case.sync[b] == "s" or self.fault == "no-sync-ignored"
        self.record.losses.append(self.forward_backward(step, b, sync))

    def evaluate(self, step, b):
        self.model.eval()
        with torch.no_grad():
            loss = loss_of(self.case, self.model, self.batch(step, b),
                           self.device)
        self.model.train()
        return loss.item()

    def one_step(self, step):
        case = self.case
        self.look.recording = step < case.recorded_steps
        for b in range(len(case.sync)):
            self.microbatch(step, b)
        if self.look.recording:
            self.show("reduced", step)
            self.show("before", step)
        with self.memory.engine():
            self.optimizer.step()
        if self.look.recording:
            self.show("after", step)
            for i in range(len(STATES[case.optimizer])):
                self.show(f"state{i}", step)
        self.optimizer.zero_grad()
        self.memory.stepped()
        if case.scenario == "eval":
            self.record.other_losses.append(self.evaluate(step + 1, 0))
        self.record.step_sequences.append(self.record.mark())

    def summon(self, step):
        """The whole model at once, outside of a pass."""
        with self.engine.summon(self):
            self.show_whole(step)

    def show_whole(self, step, unit=None):
        for p, w in sorted(weights_of(self.model).items()):
            if unit is None or self.case.unit_of(p) == unit:
                self.record.tensor("summoned", step, 0, p, 0, values_of(w))

    def begin(self):
        self.end()  # of a life before
        plain = Model(self.case, self.look).to(self.device)
        with self.memory.engine():
            self.model = self.engine.shard(self, plain)
        self.optimizer = self.engine.optimizer(self)

    def end(self):
        self.model = self.optimizer = None
        self.engine.leave()
        gc.collect()  # modules and what shards them know each other

    def train(self):
        case, record = self.case, self.record
        self.begin()
        record.shard_sequence = record.mark()
        self.memory.sharded()
        if case.recorded_steps:
            self.show("initial", 0)
        for step in range(case.steps):
            self.one_step(step)
        if case.scenario == "summon":
            self.summon(case.steps)
        if case.recorded_steps:
            self.show("final", case.steps)
        record.end_sequence = record.mark()

    def live(self):
        self.memory.begin(self.engine)
        if self.scripted:
            ScriptedRun(self).play()
        else:
            self.train()
            if self.case.scenario == "again":
                self.record.forget()
                self.train()
        self.end()
        self.record.memory = self.memory.end()


class ScriptedRun:
    """A script, action by action: each is a step of the record."""

    def __init__(self, life):
        self.life, self.engine = life, life.engine
        self.script = read_script(life.case.script_text)
        self.at = 0
        self.scaler = self.make_scaler()

    def play(self):
        life, record = self.life, self.life.record
        life.begin()
        self.set_numbers()
        record.shard_sequence = record.mark()
        life.memory.sharded()
        for self.at, action in enumerate(self.script.actions):
            loss = getattr(self, "play_" + action.verb)(action)
            record.losses.append(loss or 0.0)
            record.step_sequences.append(record.mark())
            life.memory.stepped()
        record.end_sequence = record.mark()

    def set_numbers(self):
        """Of optimizers, where the script says others than cases have."""
        said = self.script.settings
        if int(said.get("groups", ["1"])[0]) != 1:
            raise ValueError("groups are not claimed")
        for group in self.life.optimizer.param_groups:
            if "momentum" in said and "momentum" in group:
                group["momentum"] = float(said["momentum"][0])
            if "betas" in said and "betas" in group:
                group["betas"] = tuple(float(x) for x in said["betas"])
            if "eps" in said and "eps" in group:
                group["eps"] = float(said["eps"][0])

    def make_scaler(self):
        said = self.script.settings.get("scale")
        if not said:
            return None
        self.scale = 2.0 ** int(said[0][2:])
        self.every = int(said[2]) if len(said) > 1 else 0  # 0: it stays
        return self.engine.scaler(
            self.life, init_scale=self.scale, growth_factor=2.0,
            backoff_factor=0.5, growth_interval=self.every or 2 ** 30)

    def scaled_step(self):
        """That ranks agree on what was found costs one all-reduce of a number,
        which the profile allows, and which is no unit's."""
        scaler, optimizer = self.scaler, self.life.optimizer
        with self.life.look.agreement():
            scaler.unscale_(optimizer)
            found = sum(float(f) for f in
                        scaler._found_inf_per_device(optimizer).values())
            scaler.step(optimizer)
            if self.every:
                scaler.update()
            else:
                scaler.update(self.scale)
        self.life.record.answers.append(
            [f"found-action-{self.at + 1}", int(found != 0)])

    def play_pass(self, a):
        look = self.life.look
        look.edits = a.edits
        loss = self.life.forward_backward(
            a.step, a.microbatch, a.sync,
            *([self.scaler.scale] if self.scaler else []))
        look.edits = []
        return loss

    def play_eval(self, a):
        return self.life.evaluate(a.step, a.microbatch)

    def play_step(self, a):
        for group in self.life.optimizer.param_groups:
            group["lr"] = a.lr[0]
            group["weight_decay"] = a.decay[0] if group["decays"] else 0.0
        with self.life.memory.engine():
            if self.scaler:
                self.scaled_step()
            else:
                self.life.optimizer.step()

    def play_zero(self, a):
        self.life.optimizer.zero_grad()

    def play_look(self, a):
        states = STATES[self.life.case.optimizer]
        for stage in ("after", "reduced",
                      *(f"state{i}" for i in range(len(states)))):
            self.life.show(stage, self.at)

    def play_summon(self, a):
        self.life.summon(self.at)

    def play_unshard(self, a):
        if a.number == ALL:
            raise ValueError("unshard_all without its reshard_all")
        self.engine.unshard_unit(self.life, a.number)
        self.life.show_whole(self.at, a.number)

    def play_reshard(self, a):
        self.engine.reshard_unit(self.life, a.number)

    def play_sync(self, a):
        self.engine.set_knob(self.life, ALL, "sync", float(a.sync))

    def play_set(self, a):
        self.engine.set_knob(self.life, a.number, a.knob, a.value)

    def play_freeze(self, a, on=False):
        n = len(self.life.case.parameters)
        which = range(n) if a.number == ALL else [a.number]
        self.engine.train(
            self.life, {self.life.case.original(p) for p in which}, on)

    def play_thaw(self, a):
        self.play_freeze(a, True)

    def play_again(self, a):
        self.life.begin()
        self.set_numbers()


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
        engine.faults.get(fault, tuple)()
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
    parser.add_argument(
        "--fault", action="append", default=[], metavar="FAULT[@CASE]",
        help="be wrong in this way, for a test of the suite; in that case "
        f"alone, or in all: {', '.join((*FAULTS, *engine.faults))}")
    engine.add_options(parser)
    parser.add_argument("verb", choices=("claims", "run"))
    parser.add_argument("job")
    a = parser.parse_args()
    engine.take_options(a)
    faults = {case: fault for fault, _, case in
              (f.partition("@") for f in a.fault)}
    for fault in faults.values():
        if fault not in FAULTS and fault not in engine.faults:
            parser.error(f"no such fault: {fault}")
    engine.version = engine.version or torch.__version__.split("+")[0]
    if a.verb == "claims":
        write_text(os.path.join(a.job, "claims.json"), json.dumps({
            "version": 1, "engine": engine.name,
            "engine_version": engine.version, "claims": engine.claims}))
        return
    # Optimizers and units want it; else each rank imports it for a second.
    importlib.import_module("torch._dynamo")
    job = read_json(os.path.join(a.job, "cases.json"))
    for name in job["cases"]:
        run_case(engine, Case(os.path.join(a.job, name)), job["records"],
                 a.device, faults.get(name, faults.get("")))

# SPDX-License-Identifier: Apache-2.0
"""adapter_torch.py - what the adapters for PyTorch share.

An engine (pytorch_*.py) shards a model, says what of it a rank owns, and
names its claims. Here is how a rank lives a case with it. What is looked at
meanwhile is in adapter_look.py, scripts are in adapter_script.py, processes
and the command line in adapter_ranks.py, the models in adapter_models.py.
"""

import contextlib
import gc
import math

import torch

from adapter_checkpoint import Resume, names_of
from adapter_graph import GraphModel
from adapter_job import RankRecord
from adapter_look import Look, values_of
from adapter_memory import BUFFER, Memory, Unmeasured
from adapter_models import (
    STATES, Model, holders_of, loss_of, make_optimizer, numel, weights_of,
)
from adapter_script import ALL, ScriptedRun

RESUMES = ("resume", "resume-full", "resume-local")
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


def add_casts(parser, which):
    """An option, of an engine that claims dtypes."""
    parser.add_argument(
        "--cast", action="append", default=[], choices=which,
        help="in mixed precision these of each unit are cast to the dtype of "
        "its parameters; else they are left alone")


def casts_of(engine, chosen):
    """What was chosen, which the engine then claims."""
    engine.claims = [*engine.claims, *(f"casts-{what}" for what in chosen)]
    return chosen


class Engine:
    """What engines have in common; an engine has open, shard, pieces, too."""

    version = None  # PyTorch's
    faults = {}  # of its own: what makes it wrong
    remembers_sync = False  # units do; what a pass does not say is None
    rewraps = True  # in another world one unit loads what others were saved of

    def prepare(self):
        """Once, in the process that ranks are forks of: what each of them would
        import for itself."""

    def form(self, kind):
        """Its own, of an engine that claims load (adapter_checkpoint.py); of
        the suite's it is sharded, full, full-rank0 or local."""

    def add_options(self, parser):
        """Of its own, of the command line."""

    def take_options(self, a):
        """What was given of them."""

    def model(self, life):
        """Before it is sharded."""
        kind = GraphModel if life.case.workload == "graph" else Model
        return kind(life.built_as, life.look, life.renamed)

    def optimizer(self, life):
        return make_optimizer(life.case, life.model, life.model.parameters(),
                              self.wholes(life))

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

    # Of engines that claim dtypes.

    def edges(self, life):
        """(unit, module whose own code is played, module that is called)."""
        return ()

    # What scripts do, of engines that claim it.

    def set_knob(self, life, unit, knob, value):
        """Sync of all units alone, where nothing else is claimed: passes that
        do not say whether they reduce are as this says."""
        if (unit, knob) != (ALL, "sync"):
            raise ValueError(f"{knob} is not claimed")
        life.reduces = value != 0

    def scaler(self, life, **options):
        """Torch's, of a loss."""
        return torch.amp.GradScaler(life.device, **options)

    def wholes(self, life):
        """Of each parameter what an optimizer knows of it, also where this rank
        owns no element: a rank that trains what others do not has reductions of
        its own."""
        return [(piece.p, piece.whole) for piece in self.pieces(life)]

    def train(self, life, parameters, on):
        """These are trained from now on, or not. Torch's optimizers keep the
        states of what is frozen; the specification drops them, and so does
        whoever drives torch."""
        for p, whole in self.wholes(life):
            if p in parameters:
                whole.requires_grad_(on)
                if not on:
                    life.optimizer.state.pop(whole, None)


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
        elif stage[-1] in "01":  # state0, loaded1
            state = life.optimizer.state.get(self.whole, {})
            values = state.get(STATES[life.case.optimizer][int(stage[-1])])
            if values is None and self.whole.requires_grad and (
                    life.scripted or life.case.workload == "graph"):
                values = torch.zeros_like(self.whole)  # torch makes them later
        return None if values is None else self.cut(values.detach())


@contextlib.contextmanager
def buffers_back(life):
    """Behind it they are what they were: of an evaluation that is a fault."""
    kept = [(module, name, getattr(module, name).clone())
            for module, name in life.holders.values()]
    yield
    for module, name, values in kept:
        getattr(module, name).copy_(values)


class Rank:
    """Lives a case."""

    def __init__(self, engine, case, rank, device, fault):
        self.engine, self.case, self.rank = engine, case, rank
        self.built_as = case  # whose modules it has
        self.device, self.fault = device, fault
        self.record = RankRecord(rank)
        self.groups = {}
        self.look = Look(case, self.record, fault, self.groups)
        self.scripted = case.script_text is not None
        self.memory = Unmeasured()
        self.holders = {}  # of buffers
        if "live-bytes" in engine.claims and device == "cpu":
            self.memory = Memory(self.owned)
        self.model = self.optimizer = None
        self.rank0 = False  # whether it alone has initial values
        self.deferred = False  # whether nobody has
        self.renamed = None  # which parameter is called otherwise
        self.shown = {}  # whole parameters, when all were there last

    def owned(self):
        for module, name in self.holders.values():
            buffer = getattr(module, name)
            yield BUFFER, buffer, buffer.nbytes
        yield from self.engine.owned(self)

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
        if sync is not None:
            self.reduces = sync
        with self.engine.sync(self, sync if self.engine.remembers_sync
                              else self.reduces):
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
        with torch.no_grad(), buffers_back(self) \
                if self.fault == "buffers-back" else contextlib.nullcontext():
            loss = loss_of(self.case, self.model, self.batch(step, b),
                           self.device)
        self.model.train()
        return loss.item()

    @contextlib.contextmanager
    def aside(self):
        """What happens here is neither recorded nor measured."""
        self.look.recording, self.look.inside = False, True
        with self.memory.paused():
            yield
        self.look.inside = False

    def bare_step(self, step):
        for b in range(len(self.case.sync)):
            self.microbatch(step, b)
        self.optimizer.step()
        self.optimizer.zero_grad()

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
            self.show_buffers("buffer", step + 1)
        self.optimizer.zero_grad()
        self.memory.stepped()
        if case.scenario == "eval":
            self.record.other_losses.append(self.evaluate(step + 1, 0))
        self.record.step_sequences.append(self.record.mark())

    def summon(self, step):
        """The whole model at once, outside of a pass."""
        with self.engine.summon(self):
            self.show_whole(step)

    def show_buffers(self, stage, step):
        for b, (module, name) in self.holders.items():
            self.record.tensor(stage, step, 0, b, 0,
                               values_of(getattr(module, name)))

    def show_whole(self, step, unit=None):
        for p, w in sorted(weights_of(self.model).items()):
            if unit is None:
                self.shown[p] = w.detach().clone()
            if unit is None or self.case.unit_of(p) == unit:
                self.show_parameter(step, p, w)

    def show_parameter(self, step, p, w):
        if not self.case.is_ignored(p):
            self.record.tensor("summoned", step, 0, p, 0, values_of(w))

    def begin(self, blank=False):
        """Blank: what is not loaded then is no number."""
        self.end()  # of a life before
        plain = self.engine.model(self).to(self.device)
        if self.built_as.modules is not self.case.modules:
            plain.unit_modules = {0: plain}
        blank = blank or self.deferred or self.rank0 and self.rank > 0
        for w in plain.parameters() if blank else ():
            w.data.fill_(math.nan)
        self.names, self.reduces = names_of(plain), True
        self.holders = holders_of(plain)
        self.frozen = {p for p in self.names.values()
                       if self.case.is_frozen(p)}
        # What makes all tensors anew has no values for them.
        with buffers_back(self) if self.deferred else \
                contextlib.nullcontext(), self.memory.engine():
            self.model = self.engine.shard(self, plain)
        for unit, inner, outer in self.engine.edges(self):
            self.look.edges(unit, inner, outer)
        self.optimizer = self.engine.optimizer(self)

    def end(self):
        self.model = self.optimizer = None
        self.shown, self.holders = {}, {}
        self.engine.leave()
        for _ in range(2):  # modules and what shards them know each other,
            gc.collect()  # partly by autograd's nodes, which go last

    def train(self):
        case, record = self.case, self.record
        self.begin()
        record.shard_sequence = record.mark()
        self.memory.sharded()
        if case.recorded_steps:
            self.show("initial", 0)
            self.show_buffers("buffer", 0)
        for step in range(case.steps):
            self.one_step(step)
        if case.scenario == "summon":
            self.summon(case.steps)
        if case.recorded_steps:
            self.show("final", case.steps)
            self.show_buffers("buffer", case.steps)
        record.end_sequence = record.mark()

    def live(self, exchange):
        """`exchange`: the folder in which checkpoints lie, and the like."""
        self.memory.begin(self.engine)
        if self.scripted:
            ScriptedRun(self, exchange).play()
        elif self.case.scenario in RESUMES:
            Resume(self, exchange).play()
        else:
            self.train()
            if self.case.scenario == "again":
                self.record.forget()
                self.train()
        self.end()
        self.record.memory = self.memory.end()


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

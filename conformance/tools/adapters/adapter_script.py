# SPDX-License-Identifier: Apache-2.0
"""adapter_script.py - scripts, as adapters play them.

docs/formats.md has the grammar. What an adapter does not claim (calls that must
be refused, what happens in the middle of a pass) never gets here.
"""

from dataclasses import dataclass, field

import numpy as np
import torch
import torch.distributed as dist

from adapter_models import STATES, numel
from adapter_slots import Slot

ALL = "all"


@dataclass
class Action:
    """A line of a script: what else it has depends on its verb."""

    verb: str
    step: int = 0
    microbatch: int = 0
    sync: bool | None = None  # None: unsaid
    edits: list = field(default_factory=list)
    lr: list = field(default_factory=list)
    decay: list = field(default_factory=list)
    number: int | str | None = None  # of a unit, or a parameter; or ALL
    knob: str = ""
    value: float = 0.0
    slot: str = ""
    form: str = ""
    source: str = ""  # of values that are given
    rank0: bool = False  # whether it alone is shown them
    parts: tuple = ()  # of what is saved; (): all
    lenient: bool = False


@dataclass
class Edit:
    """What becomes of a local gradient: see `edit` there."""

    kind: str
    exponent: int = 0
    rank: int | None = None
    param: int | None = None
    element: int | None = None


@dataclass
class Script:
    settings: dict
    actions: list  # with what is repeated as often as it is


def numbers(text):
    return [float(x) for x in text.split(",")]


def own_of(said, group):
    """One for all groups, or one each."""
    return said[group if len(said) > 1 else 0]


def number_or_all(word):
    return word if word == ALL else int(word)


def edits_of(words):
    """... { edit }: a kind, and of whom."""
    found = []
    while words:
        word = words.pop(0)
        if word == "times":
            found.append(Edit(word, exponent=int(words.pop(0)[2:])))
        elif word == "set":
            found.append(Edit(words.pop(0)))
        elif word in ("inf", "nan"):
            found.append(Edit(word))
        elif word in ("rank", "param", "element") and found:
            setattr(found[-1], word, int(words.pop(0)))
        else:
            raise ValueError(f"no adapter plays '{word}' in a pass")
    return found


def step_of(text, turn):
    """N, i, or i+N."""
    if text[0] != "i":
        return int(text)
    return turn + (int(text[2:]) if len(text) > 1 else 0)


def action_of(line, turn):
    words = line.split()
    verb = words.pop(0)
    if verb in ("pass", "eval"):
        step, microbatch = words.pop(0).split(".")
        sync = {"s": True, "n": False}.get(words[0]) if words else None
        if sync is not None:
            words.pop(0)
        return Action(verb, step_of(step, turn), int(microbatch), sync,
                      edits_of(words))
    if verb == "step":
        said = dict(zip(words[::2], words[1::2]))
        return Action(verb, lr=numbers(said["lr"]),
                      decay=numbers(said.get("decay", "0")))
    if verb == "set":
        return Action(verb, number=number_or_all(words[0]), knob=words[1],
                      value=float(words[2]))
    if verb in ("freeze", "thaw"):
        return Action(verb, number=number_or_all(words[0]))
    if verb in ("unshard", "reshard"):
        return Action(verb, number=int(words[0]) if words else ALL)
    if verb in ("wait", "load"):
        return Action(verb, slot=words[0], lenient="lenient" in words)
    if verb == "save":
        form, *parts = words[1:]
        if "in" in parts:
            raise ValueError(f"no adapter plays '{line}'")
        return Action(verb, slot=words[0], form=form, parts=tuple(parts[1:]))
    if verb == "sync":
        return Action(verb, sync=words[0] == "on")
    if verb == "assign":
        return Action(verb, number=number_or_all(words[0]), source=words[1])
    if verb == "summon" and words:
        return Action("summon_some", number=number_or_all(words[0]),
                      rank0="rank0" in words)
    if verb == "again" and words:
        return Action(verb, number=int(words[1]))
    if verb in ("zero", "look", "summon", "again"):
        return Action(verb)
    raise ValueError(f"no adapter plays '{line}'")


def play_out(lines, turn=0):
    """The actions of lines, and of what is repeated among them."""
    at = 0
    while at < len(lines):
        words = lines[at].split()
        at += 1
        if words[0] != "repeat":
            yield action_of(lines[at - 1], turn)
            continue
        depth, begin = 1, at
        while depth:
            depth += lines[at].startswith("repeat ")
            depth -= lines[at] == "}"
            at += 1
        for i in range(int(words[1])):
            yield from play_out(lines[begin:at - 1], i)


def read_script(text):
    """Of its text, with semicolons for the ends of lines."""
    lines = text.split(";")
    begin = lines.index("--")
    settings = {}
    for line in lines[1:begin]:
        word, *rest = line.split()
        settings[word] = rest
    lines = lines[begin + 1:]
    return Script(settings, list(play_out(lines)))


def values_of_number(number, p, n):
    """What an `assign` gives of a number, as the suite does."""
    x = np.uint64((number << 40) + (p << 32)) + np.arange(n, dtype=np.uint64)
    x += np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    x ^= x >> np.uint64(31)
    low = (x & np.uint64(255)).astype(np.int32) - 128
    return low.astype(np.float32) * np.float32(2.0 ** -10)


class ScriptedRun:
    """A script, action by action: each is a step of the record."""

    def __init__(self, life, exchange):
        self.life, self.engine, self.exchange = life, life.engine, exchange
        self.script = read_script(life.case.script_text)
        self.at = 0
        self.life.rank0 = "rank0" in self.script.settings
        self.life.deferred = "deferred" in self.script.settings
        self.scaler = self.make_scaler()
        self.slots = {}  # what was saved

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
        for group in self.life.optimizer.param_groups:
            of = group["group"]
            if "momentum" in said and "momentum" in group:
                group["momentum"] = own_of(numbers(said["momentum"][0]), of)
            if "betas" in said and "betas" in group:
                group["betas"] = tuple(own_of(numbers(x), of)
                                       for x in said["betas"])
            if "eps" in said and "eps" in group:
                group["eps"] = own_of(numbers(said["eps"][0]), of)

    def make_scaler(self):
        said = self.script.settings.get("scale")
        if not said:
            return None
        self.scale = 2.0 ** int(said[0][2:])
        self.every = int(said[2]) if len(said) > 1 else 0  # 0: it stays
        scaler = self.engine.scaler(
            self.life, init_scale=self.scale, growth_factor=2.0,
            backoff_factor=0.5, growth_interval=self.every or 2 ** 30)
        scaler.scale(torch.zeros(()))  # a step may be what comes first
        return scaler

    def scaled_step(self):
        """That ranks agree on what was found costs one all-reduce of a number,
        which the profile allows, and which is no unit's."""
        scaler, optimizer = self.scaler, self.life.optimizer
        with self.life.look.agreement():
            scaler.unscale_(optimizer)
            if not scaler._found_inf_per_device(optimizer):
                # Torch refuses a step for which there is no gradient.
                scaler._found_inf_per_device(optimizer)[
                    torch.device(self.life.device)] = torch.zeros(())
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
            group["lr"] = own_of(a.lr, group["group"])
            group["weight_decay"] = own_of(a.decay, group["group"]) \
                if group["decays"] else 0.0
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
        self.life.show_buffers("buffer", self.at)

    def play_summon(self, a):
        self.life.summon(self.at)

    def play_summon_some(self, a):
        """One unit, or all on rank 0 alone, or both."""
        life, case = self.life, self.life.case
        unit = None if a.number == ALL else a.number
        with self.engine.summon_unit(life, unit, a.rank0) as whole:
            for p, w in sorted(whole.items()):
                if (unit is None or case.unit_of(p) == unit) and \
                        not (a.rank0 and life.rank):
                    life.show_parameter(self.at, p, w)

    def values_for(self, source, p):
        """Of the whole parameter."""
        case = self.life.case
        if source == "summoned":
            return self.life.shown[p]
        said = case.parameters[p]
        values = case.weights[said["name"]] if source == "initial" else \
            values_of_number(int(source), p, numel(case, p))
        return torch.from_numpy(values.reshape(said["shape"]).copy())

    def play_assign(self, a):
        """The first name of a tie is given values last."""
        case = self.life.case
        which = range(len(case.parameters)) if a.number == ALL else [a.number]
        self.engine.assign(self.life, {
            case.original(p): self.values_for(a.source, p)
            for p in reversed(which)})

    def play_unshard(self, a):
        if a.number == ALL:
            self.whole = self.engine.summon(self.life)
            self.whole.__enter__()
            self.life.show_whole(self.at)
            return
        self.engine.unshard_unit(self.life, a.number)
        self.life.show_whole(self.at, a.number)

    def play_reshard(self, a):
        if a.number == ALL:
            self.whole.__exit__(None, None, None)
            return
        self.engine.reshard_unit(self.life, a.number)

    def play_sync(self, a):
        self.engine.set_knob(self.life, ALL, "sync", float(a.sync))

    def play_set(self, a):
        self.engine.set_knob(self.life, a.number, a.knob, a.value)

    def play_freeze(self, a, on=False):
        n = len(self.life.case.parameters)
        which = range(n) if a.number == ALL else [a.number]
        which = {self.life.case.original(p) for p in which}
        self.life.frozen = self.life.frozen - which if on else \
            self.life.frozen | which
        self.engine.train(self.life, which, on)

    def play_thaw(self, a):
        self.play_freeze(a, True)

    def play_again(self, a):
        """What is loaded at once begins with nothing, if all of it is."""
        following = self.script.actions[self.at + 1:self.at + 2]
        self.life.renamed = a.number
        self.life.begin(blank=[(f.verb, f.lenient) for f in following] ==
                        [("load", False)])
        self.life.record.shard_sequence = self.life.record.mark()
        self.set_numbers()

    def play_save(self, a):
        with self.life.aside():
            self.slots[a.slot] = Slot(self.life, self.exchange, a, self.at)
            self.slots[a.slot].save(self.scaler)

    def play_wait(self, a):
        with self.life.aside():
            self.slots[a.slot].wait()

    def play_load(self, a):
        with self.life.aside():
            self.slots[a.slot].load(self.scaler, a.lenient)

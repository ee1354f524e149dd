# SPDX-License-Identifier: Apache-2.0
"""adapter_checkpoint.py - saves and loads in an implementation's own forms.

A form has a name, which records say, and three parts: begin(life, folder) saves
and gives what waits for its end; load(life, folder) brings back what was saved;
read(life, folder) is another reader, who has whole tensors by name. A world of
other ranks, with the whole model as one unit, may load what was saved and save
it again: then that is what is read and loaded.
"""

import contextlib
import os
import time

import torch
import torch.distributed as dist

import adapter_bad as bad
from adapter_look import values_of
from adapter_models import STATES, leaves_of

SECONDS = 150  # that one world waits for the other
FAULTS = ("shard-twice", "moments-swapped", "moments-lost", "late-save",
          *bad.FAULTS)


def names_of(model):
    """What modules call their parameters, before anybody wraps them."""
    known = {id(leaf): leaf.index for leaf in leaves_of(model)}
    return {f"{path}.{name}": p for path, module in model.named_modules()
            for name, p in known.get(id(module), {}).items()}


def has_part(parts, part):
    """Of a save; nothing is said where all is saved."""
    return not parts or part in parts


def saved_names(life, parts=()):
    """What a save has now: parameters, and (name, key) of states."""
    case, names = life.case, set()
    for name, p in life.names.items():
        if case.original(p) != p or case.is_ignored(p):
            continue
        if has_part(parts, "parameters"):
            names.add(name)
        if has_part(parts, "states") and p not in life.frozen:
            names |= {(name, key) for key in STATES[case.optimizer]}
    return names


def names_told(told):
    """What load_state_dict says that is missing, and that is unexpected."""
    return set(told.missing_keys), set(told.unexpected_keys)


def names_in(state):
    """Of a dictionary that was saved, the same."""
    states = state.get("optimizer", {}).get("state", {})
    return set(state.get("model", {})) | {
        (name, key) for name, values in states.items()
        for key in values if key != "step"}


def wait_for(path):
    until = time.monotonic() + SECONDS
    while not os.path.exists(path):
        bad.raise_trouble(path)
        if time.monotonic() > until:
            raise TimeoutError(f"{path} never came")
        time.sleep(0.005)


def put_mark(path):
    with open(path, "w", encoding="ascii"):
        pass


def kind_of(case):
    """What the suite calls the form of a case."""
    if case.scenario == "resume-full":
        return "full-rank0" if case.wrap == "layer" else "full"
    return "local" if case.scenario == "resume-local" else "sharded"


class Resume:
    """Half of the steps, a save, the other half while that is written; then a
    new life loads, and plays the other half again. What the first life lost in
    it stands in `other_losses`."""

    def __init__(self, life, exchange):
        self.life, self.case = life, life.case
        self.half = life.case.steps // 2
        self.form = life.engine.form(kind_of(life.case))
        self.saved = os.path.join(exchange, "saved")
        self.passed_on = os.path.join(exchange, "passed-on")
        self.mark = os.path.join(exchange, "mark")
        self.mark_back = os.path.join(exchange, "back")
        # By those of another world, if there is one.
        self.passes = bad.ranks_of_other(life.engine, self.case, life.fault) > 0
        self.loaded = self.passed_on if self.passes else self.saved

    def play(self):
        life, record = self.life, self.life.record
        life.begin()
        record.shard_sequence = record.mark()
        life.memory.sharded()
        life.show("initial", 0)
        life.show_buffers("buffer", 0)
        for step in range(self.half):
            life.one_step(step)
        with life.aside(), bad.full_disk() if life.fault == "full-disk" \
                else contextlib.nullcontext():
            self.save()
            bad.exchange_saved(life, self.saved)
        if life.fault == "torn-save":
            bad.tear(self.saved, life.rank)
        life.begin(blank=True)
        with life.aside():
            self.load()
        for step in range(self.half, self.case.steps):
            life.one_step(step)
        life.show("final", self.case.steps)
        life.show_buffers("buffer", self.case.steps)
        record.end_sequence = record.mark()

    def save(self):
        life, record = self.life, self.life.record
        lost = len(record.losses)
        late = life.fault == "late-save" or \
            life.fault == "mixed-saves" and life.rank == 1
        wait = None if late else self.begin_save()
        for step in range(self.half, self.case.steps):
            life.bare_step(step)
            wait = wait or self.begin_save()
        record.other_losses = record.losses[lost:]
        del record.losses[lost:]
        wait()
        dist.barrier()
        if life.rank == 0:
            put_mark(self.mark)
        if self.passes:
            wait_for(self.mark_back)

    def begin_save(self):
        if self.life.fault == "other-release":
            return lambda: None
        with SHARDS.get(self.life.fault, contextlib.nullcontext)(self.life):
            return self.form.begin(self.life, self.saved)

    def load(self):
        life = self.life
        self.form.load(life, self.loaded)
        if life.fault == "moments-swapped":
            swap_moments(life)
        if life.fault == "moments-lost":
            lose_moments(life)
        states = range(len(STATES[self.case.optimizer]))
        for stage in ("loaded", *(f"loaded{i}" for i in states)):
            life.show(stage, self.half)
        life.show_buffers("buffer-loaded", self.half)
        self.show_peers(self.form.read(life, self.loaded))
        dist.barrier()
        life.record.answers.append([f"form-{self.form.name}", 0])

    def show_peers(self, tensors):
        """Of whole tensors (a value, then states) what this rank owns."""
        for piece in self.life.engine.pieces(self.life):
            n = piece.values(self.life, "loaded").numel()
            stages = zip(("peer", "peer0", "peer1"),
                         tensors.get(piece.p, ()))
            for stage, whole in stages:
                own = whole.reshape(-1)[piece.first:piece.first + n]
                self.life.record.tensor(stage, self.half, 0, piece.p,
                                        piece.first, values_of(own))

    def pass_on(self):
        """As one of another world."""
        wait_for(self.mark)
        self.life.begin(blank=True)
        self.form.load(self.life, self.saved)
        self.form.begin(self.life, self.passed_on)()
        dist.barrier()
        if self.life.rank == 0:
            put_mark(self.mark_back)


# ---- Faults ----

@contextlib.contextmanager
def shard_twice(life):
    """Rank 1 has the values of rank 0, as far as they go."""
    kept = []
    for piece in life.engine.pieces(life):
        own = piece.values(life, "after")
        kept.append((own, own.clone()))
    n = min_everywhere(sum(own.numel() for own, _ in kept))
    flat = torch.cat([was for _, was in kept])[:n]
    dist.broadcast(flat, 0)
    if life.rank == 1:
        put_flat(kept, flat)
    yield
    for own, was in kept:
        own.copy_(was)


def min_everywhere(n):
    least = torch.tensor([n])
    dist.all_reduce(least, dist.ReduceOp.MIN)
    return int(least)


def put_flat(kept, flat):
    at = 0
    for own, _ in kept:
        part = flat[at:at + own.numel()]
        own[:part.numel()].copy_(part)
        at += own.numel()


def swap_moments(life):
    """Of two parameters, as far as they go."""
    states = [piece.values(life, "state0")
              for piece in life.engine.pieces(life)]
    a, b = [state for state in states if state is not None][:2]
    n = min(a.numel(), b.numel())
    kept = a[:n].clone()
    a[:n].copy_(b[:n])
    b[:n].copy_(kept)


def lose_moments(life):
    """Behind a load an optimizer begins with none."""
    for piece in life.engine.pieces(life):
        for i in range(len(STATES[life.case.optimizer])):
            state = piece.values(life, f"state{i}")
            if state is not None:
                state.zero_()


SHARDS = {"shard-twice": shard_twice}


def by_parameter(life, values, states):
    """Both by the names that modules have: as read() gives it."""
    keys = STATES[life.case.optimizer]
    return {p: [values[name],
                *(states[name][key] for key in keys if name in states)]
            for name, p in life.names.items() if name in values}

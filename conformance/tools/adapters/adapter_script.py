# SPDX-License-Identifier: Apache-2.0
"""adapter_script.py - scripts, as adapters play them.

docs/formats.md has the grammar. What an adapter does not claim (saves, loads,
calls that must be refused, what happens in the middle of a pass) never gets
here.
"""

import math
from dataclasses import dataclass, field

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
    if verb == "sync":
        return Action(verb, sync=words[0] == "on")
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


def edited(gradient, edits, rank, ranks, parameter, n_parameters):
    """A local gradient (a tensor), after what a script makes of it."""
    out = gradient
    for e in edits:
        if e.rank is not None and e.rank % ranks != rank or \
                e.param is not None and e.param % n_parameters != parameter:
            continue
        out = out.clone()
        flat = out.reshape(-1)
        if e.element is not None and e.kind != "tie":
            at = e.element % flat.numel()
            flat = flat[at:at + 1]
        if e.kind == "times":
            left = e.exponent
            while left < -126:  # 2^-160 is no float32
                flat.mul_(2.0 ** -126)
                left += 126
            flat.mul_(2.0 ** left)
        elif e.kind == "tie":
            flat.zero_()
            for at, value in enumerate((1.0, 2.0 ** -24, 2.0 ** -80)):
                flat[at:at + 1] = value
        else:
            flat.fill_({"inf": math.inf, "nan": math.nan, "zero": 0.0,
                        "subnormal": 2.0 ** -140}[e.kind])
    return out

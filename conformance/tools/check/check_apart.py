# SPDX-License-Identifier: Apache-2.0
"""check_apart.py - where the collectives of ranks part: each rank notes in a
file what it is about to do, before it may die of it."""

import json
import os


def path_of(task, rank):
    return os.path.join(task.scratch, f"collectives-{rank}")


class Log:
    """Of a rank: each collective, and what a reduction's unit has without a
    gradient."""

    def __init__(self, task, rank, units, player):
        self.file = os.open(path_of(task, rank), os.O_WRONLY | os.O_CREAT |
                            os.O_APPEND)
        self.player = player
        described = player.record.lists["parameters"]
        self.names = [row[0] for row in described]
        self.units = [(unit.name or "(root)",
                       [p for p in unit.parameters if described[p][-1]])
                      for unit in units]

    def write(self, kind, unit, n):
        if not self.player.playing:
            return
        name, parameters = self.units[unit] if unit >= 0 else ("", [])
        lacks = [self.names[p] for p in parameters
                 if p not in self.player.given] \
            if kind == "reduce-scatter" else []
        os.write(self.file, (json.dumps([kind, name, n, lacks]) +
                             "\n").encode())


def read(task, rank):
    try:
        with open(path_of(task, rank), encoding="ascii") as f:
            return [json.loads(line) for line in f]
    except FileNotFoundError:
        return []


def short(name, most=60):
    return name if len(name) <= most else ".." + name[-most + 2:]


def said(row):
    kind, unit, n, _ = row
    return f"{kind} of {n} elements of unit {short(unit, 30)}"


def apart(task, rank_records):
    """The first collective in which two ranks differ, in a sentence; None:
    they do not, as far as both came."""
    logs = [read(task, rank) for rank in range(len(rank_records))]
    for i in range(max(map(len, logs))):
        there = [(r, log[i]) for r, log in enumerate(logs) if i < len(log)]
        for r, row in there[1:]:
            one, first = there[0]
            if row[:3] == first[:3]:
                continue
            for has, lacks, names in (
                    (one, r, [x for x in row[3] if x not in first[3]]),
                    (r, one, [x for x in first[3] if x not in row[3]])):
                if names and row[:2] == first[:2]:
                    more = f" and {len(names) - 1} more" if names[1:] else ""
                    return (f"rank {lacks} has no gradient of "
                            f"{short(names[0])}{more}, rank {has} has: all "
                            "have to use it, or call "
                            "set_reduce_scatter_unused_params(True)")
            return (f"rank {one} comes to {said(first)}, rank {r} to "
                    f"{said(row)}: all ranks have to call the same units, and "
                    "reduce in the same passes")
    return None

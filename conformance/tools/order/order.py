# SPDX-License-Identifier: Apache-2.0
"""order.py - the order of somebody else's sums, as a tree.

    python3 order.py --box 'python3 box_gloo.py' --of gloo --ranks 2-8
    python3 order.py --box 'mpirun -n {ranks} box_mpi' --of 'Open MPI' \
        --op reduce-scatter --format bfloat16 --elements 64,65536

A box is a program that reads lines, each RANKS OP FORMAT ELEMENTS IN OUT, and
answers each with a line that says `done`. The file IN has a float32 for each
rank of each probe; rank r puts its own into all of its ELEMENTS, in FORMAT, the
ranks do OP, and OUT gets what came out, as float32, probe by probe: ELEMENTS of
each, of a reduce-scatter the ranks' parts in turn.
"""

import argparse
import array
import os
import shlex
import subprocess
import sys
import tempfile
import threading

import order_draw
import sum_order

OPS = ("all-reduce", "reduce-scatter")


class Refused(Exception):
    """What the box did is no answer."""


class Program:
    """A box, started once for each number of ranks that its command names."""

    def __init__(self, command, seconds):
        self.command, self.seconds = command, seconds
        self.process = self.ranks = None

    def start(self, ranks):
        if self.process and ("{ranks}" not in self.command or
                             self.ranks == ranks):
            return
        self.end()
        words = [w.replace("{ranks}", str(ranks))
                 for w in shlex.split(self.command)]
        try:
            self.process = subprocess.Popen(words, stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, text=True)
        except OSError as error:
            raise Refused(str(error)) from error
        self.ranks = ranks

    def ask(self, ranks, words):
        self.start(ranks)
        alarm = threading.Timer(self.seconds, self.process.kill)
        alarm.start()
        try:
            self.process.stdin.write(" ".join(words) + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline().strip()
        except OSError as error:
            answer = str(error)
        alarm.cancel()
        if answer != "done":
            raise Refused(f"the box answers '{answer}'")

    def end(self):
        if self.process:
            self.process.stdin.close()
            self.process.wait()
            self.process.stdout.close()
            self.process = None


class Sum:
    """What sum_order.probe asks."""

    def __init__(self, program, ranks, op, form, elements):
        self.program, self.ranks = program, ranks
        self.said = [str(ranks), op, form, str(elements)]
        self.elements = elements

    def __call__(self, probes):
        with tempfile.TemporaryDirectory() as scratch:
            into, out = (os.path.join(scratch, n) for n in ("in", "out"))
            with open(into, "wb") as f:
                array.array("f", [x for p in probes for x in p]).tofile(f)
            self.program.ask(self.ranks, [*self.said, into, out])
            return self.read(out, len(probes))

    def read(self, path, n):
        wanted = 4 * n * self.elements
        if not os.path.exists(path) or os.path.getsize(path) != wanted:
            raise Refused(f"it writes no {wanted} bytes")
        values = array.array("f")
        with open(path, "rb") as f:
            values.fromfile(f, n * self.elements)
        return [values[i * self.elements:(i + 1) * self.elements]
                for i in range(n)]


def places_of(found):
    return ", ".join(f"{first}-{last - 1}" if last - first > 1 else str(first)
                     for first, last in found.places)


def widths_of(found, form):
    """Where a sum has other bits than the summands."""
    other = {bits for bits in found.bits.values() if bits != form.bits}
    if not other:
        return ""
    return "; sums in " + " and ".join(
        f"{bits} bits" if bits else "more bits than can be told"
        for bits in sorted(other, key=lambda bits: bits or 99))


def line_of(found, n, form):
    if found.why:
        return f"no tree: {found.why}"
    name = sum_order.names(n).get(found.tree, "none that has a name")
    return f"{name}, {sum_order.text_of(found.tree)}" + widths_of(found, form)


def numbers(text):
    """2,4-8"""
    found = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--box", required=True, metavar="COMMAND",
                        help="of the black box; {ranks} is their number")
    parser.add_argument("--of", default="", metavar="NAME",
                        help="whose sums they are, for what is printed")
    parser.add_argument("--op", choices=OPS, default=OPS[0])
    parser.add_argument("--format", choices=sorted(sum_order.FORMATS),
                        default="float32")
    parser.add_argument("--ranks", type=numbers, default=[2, 3, 4],
                        metavar="N,M-K", help="2 to 16 (2-4)")
    parser.add_argument("--elements", type=numbers, default=[64],
                        metavar="N,...", help="of the vector, rounded up to a "
                        "multiple of the ranks (64)")
    parser.add_argument("--picture", metavar="FILE.svg",
                        help="draws the trees of the last one")
    parser.add_argument("--seconds", type=float, default=300.0,
                        help="that a call of the box may take (300)")
    a = parser.parse_args()
    if not all(2 <= n <= 16 for n in a.ranks):
        parser.error("--ranks: 2 to 16")
    if not all(1 <= n <= 1 << 24 for n in a.elements):
        parser.error("--elements: 1 to 16777216")
    return a


def probe_all(a, program, form):
    """Whether all are trees, and the last of them, to be drawn."""
    good, last = True, None
    for n in a.ranks:
        for elements in (-(-e // n) * n for e in a.elements):
            title = f"{a.of or a.box}: {a.op} of {elements} {form.name}, " \
                f"{n} ranks"
            print(title)
            found = sum_order.probe(
                Sum(program, n, a.op, form.name, elements), n, form)
            for one in found:
                print(f"  {places_of(one)}: {line_of(one, n, form)}")
                good = good and not one.why
            sys.stdout.flush()
            last = (title, found, n, form)
    return good, last


def main():
    a = arguments()
    program = Program(a.box, a.seconds)
    try:
        good, last = probe_all(a, program, sum_order.FORMATS[a.format])
    except Refused as error:
        print(f"order.py: {error}", file=sys.stderr)
        return 2
    finally:
        program.end()
    if a.picture:
        with open(a.picture, "w", encoding="utf-8") as f:
            f.write(order_draw.picture(*last))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""box_planted.py - TEST ONLY: a black box of order.py whose order is known.

usage: box_planted.py KIND, which is left, ring, pairwise, halves, wide, fused,
exact, ascending, descending, signs, tail; or fails, short, silent
"""

import array
import sys
from fractions import Fraction

from sum_order import FORMATS, balanced, chain, halves, rounded, value_of


def along(tree, values, form, bits=None):
    """With sums of so many bits; without, of those of the format."""
    return rounded(value_of(tree, values, {}, bits or form.bits), form.bits)


def fused(values, form):
    """All at once, as matrix units do it: what is far below the largest is cut
    off, and the rest is exact."""
    top = max(abs(v) for v in values)
    least = top * 2.0 ** -26
    return rounded(sum(int(v / least) for v in values) * least
                   if top else 0.0, form.bits)


def exact(values, form):
    """Of what has few bits: floats are fractions."""
    return rounded(float(sum(map(Fraction, values))), form.bits)


def sorted_by_size(values, form, falls):
    at = sorted(range(len(values)), key=lambda r: abs(values[r]),
                reverse=falls)
    return along(chain(at), values, form)


def signs(values, form):
    """What is negative comes first."""
    at = [r for r, v in enumerate(values) if v < 0.0] + \
        [r for r, v in enumerate(values) if v >= 0.0]
    return along(chain(at), values, form)


def tree_at(kind, n, place, elements):
    """Of those that have one; of `tail` two."""
    if kind == "left" or kind == "tail" and place >= 3 * elements // 4:
        return chain(list(range(n)))
    if kind == "ring":
        chunk = place * n // elements
        return chain([(chunk + 1 + k) % n for k in range(n)])
    if kind in ("pairwise", "tail"):
        return balanced(0, n)
    return halves(n) if kind in ("halves", "wide") else None


def sum_of(kind, tree, values, form):
    if tree is not None:
        return along(tree, values, form, 24 if kind == "wide" else None)
    return {"fused": fused, "exact": exact, "signs": signs,
            "ascending": lambda v, f: sorted_by_size(v, f, False),
            "descending": lambda v, f: sorted_by_size(v, f, True),
            }[kind](values, form)


def sums(kind, form, elements):
    """A box: each probe is summed once along each tree."""
    def box(probes):
        n = len(probes[0])
        trees = [tree_at(kind, n, i, elements) for i in range(elements)]
        rows = []
        for values in probes:
            of = {t: sum_of(kind, t, values, form) for t in set(trees)}
            rows.append([of[t] for t in trees])
        return rows
    return box


def main():
    kind = sys.argv[1]
    for line in sys.stdin:
        ranks, _, form, elements, into, out = line.split()
        if kind == "fails":
            print("no such op", flush=True)
            continue
        if kind == "silent":
            sys.exit(3)
        data = array.array("f", open(into, "rb").read())
        n = int(ranks)
        probes = [list(data[i:i + n]) for i in range(0, len(data), n)]
        got = sums("left" if kind == "short" else kind, FORMATS[form],
                   int(elements))(probes)
        with open(out, "wb") as f:
            for row in got[1:] if kind == "short" else got:
                array.array("f", row).tofile(f)
        print("done", flush=True)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""sum_order.py - in which order somebody else adds up, found from outside.

Of n summands two are M and -M, which is so large that what is added to it is
lost, and the others are one. What is lost was added before the two met; so the
ones that are left tell how many summands had come together by then. From all
pairs follows the tree (as FPRev does it). Then the tree is put to the proof:
values at random are added up along it, and must give the same bits.

A black box is a function: it takes probes, each a list of n values, and returns
of each probe what the sum is at each place of the vector. All places of a rank
hold the same value, so that one call tells of all places.
"""

import math
import random
from dataclasses import dataclass, field

PROOFS = 16
WIDTHS = (8, 11, 24, 53)  # bits of bfloat16, float16, float32, float64


@dataclass(frozen=True)
class Format:
    """Of the summands. What is `unit` is lost beside `big` in any of the
    widths, where the exponents allow it, and unit times n is exact."""

    name: str
    bits: int
    big: float
    unit: float


FORMATS = {f.name: f for f in (
    Format("float32", 24, 2.0 ** 100, 1.0),
    Format("bfloat16", 8, 2.0 ** 100, 1.0),
    Format("float16", 11, 2.0 ** 15, 2.0 ** -24),
)}


class NoTree(Exception):
    """Why no tree of sums of two explains it."""


@dataclass
class Found:
    """At some places of the vector."""

    tree: object = None  # a rank, or a pair of trees
    why: str = ""  # there is none
    bits: dict = field(default_factory=dict)  # subtree -> its sum's, or None
    places: list = field(default_factory=list)  # [first, last), ascending


# ---- Trees ----------------------------------------------------------------

def leaves(tree):
    if isinstance(tree, int):
        return [tree]
    return [leaf for part in tree for leaf in leaves(part)]


def join(a, b):
    """Addition commutes: the one with the least rank is first."""
    return (a, b) if min(leaves(a)) < min(leaves(b)) else (b, a)


def sums_of(tree):
    """Subtrees that are sums, inner ones first."""
    if isinstance(tree, int):
        return []
    return [s for part in tree for s in sums_of(part)] + [tree]


def chain(ranks):
    """One after the other."""
    tree = ranks[0]
    for rank in ranks[1:]:
        tree = join(tree, rank)
    return tree


def balanced(first, n):
    """Each half by itself, of which the first is the larger."""
    if n == 1:
        return first
    half = n - n // 2
    return join(balanced(first, half), balanced(first + half, n // 2))


def halves(n):
    """Pairs at half the number of ranks apart, then half of that, ..."""
    trees = list(range(n))
    while len(trees) > 1:
        half = len(trees) - len(trees) // 2
        trees = [join(trees[i], trees[i + half]) if i + half < len(trees)
                 else trees[i] for i in range(half)]
    return trees[0]


def names(n):
    """Of the trees that docs/adapters.md has, where ranks are many."""
    found = {halves(n): "halves", balanced(0, n): "balanced"}
    for r in range(n):
        down = [(r - k) % n for k in range(n)]
        found[chain(down)] = f"down from {r}"
    for r in reversed(range(n)):
        up = [(r + k) % n for k in range(n)]
        found[chain(up)] = "up" if r == 0 else f"up from {r}"
    return found


# ---- Finding one ----------------------------------------------------------

def pairs(n):
    return [(i, j) for i in range(n) for j in range(n) if i != j]


def pair_probes(n, f):
    """Each pair in both senses: an order that looks at values shows."""
    return [[f.big if r == i else -f.big if r == j else f.unit
             for r in range(n)] for i, j in pairs(n)]


def size_of(n, f, got):
    """Of the least sum that has both of a pair in it."""
    left = got / f.unit
    if left != left or left != int(left) or not 0 <= left <= n - 2:
        raise NoTree(f"{got!r} is left of {n - 2} times {f.unit!r}")
    return n - int(left)


def sizes_of(n, f, results):
    sizes = {}
    for (i, j), got in zip(pairs(n), results):
        sizes[i, j] = size_of(n, f, got)
    for i, j in pairs(n):
        if sizes[i, j] != sizes[j, i]:
            raise NoTree(f"the sum of M at {i} and -M at {j} has another "
                         "order than the other way round")
    return sizes


def tree_of(ranks, sizes):
    """Whoever meets before all of them do, is on the same side."""
    if len(ranks) == 1:
        return ranks[0]
    n, sides = len(ranks), []
    for r in ranks:
        with_it = [s for s in sides if any(sizes[r, o] < n for o in s)]
        sides = [s for s in sides if s not in with_it] + \
            [[r] + [o for s in with_it for o in s]]
    if len(sides) == 1:
        if n > 2 and all(sizes[i, j] == 2 for i in ranks for j in ranks
                         if i != j):
            raise NoTree("every pair meets before the others: the sum is "
                         "exact, or wider than can be told, or begins with "
                         "what is largest")
        raise NoTree(f"ranks {sorted(ranks)} never meet all at once")
    if len(sides) > 2:
        raise NoTree(f"{len(sides)} meet at once, "
                     f"{' and '.join(str(sorted(s)) for s in sorted(sides))}:"
                     " a sum of more than two, or one that begins with what "
                     "is smallest")
    for i in sides[0]:
        for j in sides[1]:
            if sizes[i, j] != n:
                raise NoTree(f"ranks {i} and {j} meet among {sizes[i, j]}, "
                             f"and in the tree among {n}")
    return join(*(tree_of(sorted(s), sizes) for s in sides))


# ---- How wide sums are ----------------------------------------------------

def width_probes(tree, f):
    """Of each sum but the last: a one beside 2^bits, which an equal one takes
    away behind it. What has so few bits has lost the one."""
    n, probes, asked = len(leaves(tree)), [], []
    for s in sums_of(tree)[:-1]:
        i, k = leaves(s[0])[0], leaves(s[1])[0]
        j = next(r for r in range(n) if r not in leaves(s))
        for bits in WIDTHS:
            if bits > math.log2(f.big / f.unit):
                continue
            one = f.big * 2.0 ** -bits
            probes.append([{i: f.big, k: one, j: -f.big}.get(r, 0.0)
                           for r in range(n)])
            asked.append((s, bits, one))
    return probes, asked


def widths(asked, results):
    """The bits of each sum; None: more than can be told."""
    found = {s: None for s, _, _ in asked}
    for (s, bits, one), got in zip(asked, results):
        if found[s] is None and got == 0.0:
            found[s] = bits
        elif got not in (0.0, one):
            raise NoTree(f"{got!r} is left of {one!r}")
    return found


# ---- The proof ------------------------------------------------------------

def rounded(x, bits):
    """To nearest, ties to even; exponents are not looked at."""
    if bits is None or x == 0.0 or math.isinf(x) or math.isnan(x):
        return x
    m, e = math.frexp(x)
    return math.ldexp(round(math.ldexp(m, bits)), e - bits)


def value_of(tree, values, bits, last):
    if isinstance(tree, int):
        return values[tree]
    a, b = (value_of(part, values, bits, last) for part in tree)
    return rounded(a + b, bits.get(tree, last))


def proof_probes(n, f, seed=1):
    draw = random.Random(seed)
    return [[rounded(draw.uniform(-1.0, 1.0) * 2.0 ** draw.randrange(5),
                     f.bits) for _ in range(n)] for _ in range(PROOFS)]


def prove(found, f, probes, results):
    for values, got in zip(probes, results):
        # The last sum may be wide, and rounded once more.
        want = {rounded(value_of(found.tree, values, found.bits, last), f.bits)
                for last in (f.bits, 24, 53)}
        if got not in want:
            raise NoTree(f"the sums of M have the tree {text_of(found.tree)}, "
                         "and other values another: their order depends on "
                         "them")


# ---- All of it ------------------------------------------------------------

def by_place(results):
    """Places at which all results are the same: {results: [places]}."""
    alike = {}
    for place, column in enumerate(zip(*results)):
        alike.setdefault(column, []).append(place)
    return alike


def runs(places):
    """[first, last) of ascending numbers."""
    found = []
    for p in places:
        if found and found[-1][1] == p:
            found[-1][1] = p + 1
        else:
            found.append([p, p + 1])
    return [tuple(r) for r in found]


def look(n, f, column, n_pairs):
    found = Found()
    try:
        found.tree = tree_of(list(range(n)),
                             sizes_of(n, f, column[:n_pairs]))
    except NoTree as error:
        found.why = str(error)
    return found


def probe(box, n, f):
    """What is found, one Found for each order; places are told apart that
    differ in the proof."""
    asked, proofs = pair_probes(n, f), proof_probes(n, f)
    alike = by_place(box(asked + proofs))
    all_found = []
    for column, places in alike.items():
        found = look(n, f, column, len(asked))
        found.places = runs(places)
        all_found.append((found, column[len(asked):]))
    ladders = {found.tree: width_probes(found.tree, f)
               for found, _ in all_found if not found.why}
    probes = [p for ladder, _ in ladders.values() for p in ladder]
    results, at = box(probes) if probes else [], {}
    for tree, (ladder, _) in ladders.items():
        at[tree] = results[sum(len(v) for v in at.values()):][:len(ladder)]
    for found, proof in all_found:
        if not found.why:
            settle(found, f, [r[found.places[0][0]] for r in at[found.tree]],
                   ladders[found.tree][1], proofs, proof)
    return merged(all_found)


def settle(found, f, ladder, asked, proofs, proof):
    try:
        found.bits = widths(asked, ladder)
        prove(found, f, proofs, proof)
    except NoTree as error:
        found.why, found.tree = str(error), None


def merged(all_found):
    """One for each order, by their first places."""
    of = {}
    for found, _ in all_found:
        key = (found.tree, found.why, tuple(found.bits.items()))
        if key in of:
            of[key].places = runs(sorted(
                p for first, last in of[key].places + found.places
                for p in range(first, last)))
        else:
            of[key] = found
    return sorted(of.values(), key=lambda found: found.places[0])


def text_of(tree):
    if isinstance(tree, int):
        return str(tree)
    return "(" + " + ".join(text_of(part) for part in tree) + ")"

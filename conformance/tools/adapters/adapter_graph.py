# SPDX-License-Identifier: Apache-2.0
"""adapter_graph.py - random graphs in PyTorch, as conformance/models/ has them.

A row of numbers, h, flows from call to call. A leaf makes it (h + f(h)) / 2; a
block may add x0 w to what the head adds at last, x0 being what the pass begins
with. Modules are called up to four times in a pass, and some from elsewhere
than where they stand. What is sharded is called once: of each unit a Window,
which plays all calls from the first of a module of it to the end of the last.
"""

import torch
from torch import nn
from torch.nn import functional as F

from adapter_models import NORM_EPS, Leaf, checkpoint_of, compute_again

BEGINS, ENDS = True, False


def points_of(calls, which):
    """(BEGINS or ENDS, module) of a sequence's forward, in order."""
    points, opened = [], []

    def around(i):
        at = calls[i]["around"]
        while at >= 0 and not calls[at][which]:
            at = calls[at]["around"]
        return at

    for i, call in enumerate(calls):
        if call[which]:
            while opened and opened[-1] != around(i):
                points.append((ENDS, calls[opened.pop()]["module"]))
            points.append((BEGINS, call["module"]))
            opened.append(i)
    while opened:
        points.append((ENDS, calls[opened.pop()]["module"]))
    return points


def windows_of(case, points):
    """By unit: its first point and its last."""
    found = {}
    for at, (_, module) in enumerate(points):
        unit = case.modules[module]["unit"]
        if unit != "none":
            found.setdefault(unit, [at, at])[1] = at
    return found


class GraphLeaf(Leaf):
    """A module that has parameters. In some microbatches, or in all, some get
    no gradient; what is called without a backward never gives any."""

    def __init__(self, case, module, look, made, renamed=None):
        super().__init__(case, module, look, made, renamed)
        graph = case.json["graph"]
        self.idle = {name: graph["idle"][p] for name, p in self.index.items()}
        self.constant = module in graph["without_backward"]
        self.unseen = any(p in graph["unseen"] for p in self.index.values())
        self.used = set()  # in this pass, of all leaves

    def take(self, attribute):
        w = super().take(attribute)
        attribute = self.called.get(attribute, attribute)
        if self.constant or self.idle[attribute] >> self.look.microbatch & 1:
            return w.detach()
        self.used.add(self.case.original(self.index[attribute]))
        return w

    def has(self, attribute):
        return self.called.get(attribute, attribute) in self.index

    def look_at_spare(self):
        """Nothing is computed from it."""
        if self.has("spare") and not self.unseen:
            self.take("spare")


def norm(x, gamma, beta):
    """F.layer_norm multiplies before it subtracts: of a row of one number
    nothing is left but what it rounds, where the suite has 0."""
    x = x - x.mean(-1, keepdim=True)
    variance = (x * x).mean(-1, keepdim=True)
    return x * torch.rsqrt(variance + NORM_EPS) * gamma + beta


def apply(kind, leaf, x):
    if kind == "Linear":
        return x @ leaf.take("weight")
    if kind == "Bias":
        return F.gelu(x, approximate="tanh") + leaf.take("bias")
    if kind == "Mlp":
        up = torch.relu(x @ leaf.take("up") + leaf.take("bias"))
        return up @ leaf.take("down")
    if kind == "Norm":
        return norm(x, leaf.take("gamma"), leaf.take("beta"))
    return F.gelu(x, approximate="tanh")


class Zeros(torch.autograd.Function):
    """Hands on what it is given, and gives parameters a gradient of zeros."""

    @staticmethod
    def forward(ctx, flows, *parameters):
        ctx.like = [torch.zeros_like(w, memory_format=torch.contiguous_format)
                    for w in parameters]
        return flows.view_as(flows)

    @staticmethod
    def backward(ctx, gradient):
        return gradient, *ctx.like


def with_zeros(flows, leaves):
    """Of a unit that has a backward what this pass gives no gradient gets +0,
    as the specification says. Torch would give it none."""
    if not torch.is_grad_enabled():
        return flows
    idle = {leaf.case.original(p): getattr(leaf, name) for leaf in leaves
            for name, p in leaf.index.items()
            if leaf.case.original(p) not in leaf.used}
    return Zeros.apply(flows, *(w for w in idle.values() if w.requires_grad))


class Forward:
    """One of a graph: where it stands."""

    def __init__(self, graph, x, which):
        self.graph, self.x0 = graph, x
        self.points, self.windows = graph.sequences[which]
        self.begins = {first: unit
                       for unit, (first, _) in self.windows.items()
                       if unit in graph.place}
        self.leaf_calls = 0
        self.used = set()  # what has a gradient
        for leaf in graph.leaf_of.values():
            leaf.used = self.used

    def play(self, at, end, h, added, inside):
        """Points [at, end), in the window of `inside`."""
        while at < end:
            unit = self.begins.get(at, inside)
            if unit != inside:
                h, added = self.graph.window_of(unit)(h, added)
                at = self.windows[unit][1] + 1
                continue
            begins, module = self.points[at]
            if begins:
                h, added = self.call(module, h, added)
            at += 1
        return h, added

    def call(self, module, h, added):
        graph = self.graph
        kind, leaf = graph.kinds[module], graph.leaf_of.get(module)
        constant = module in graph.constant
        if leaf is not None:
            leaf.look_at_spare()
        if kind in ("Graph", "Block"):
            if leaf is not None and leaf.has("shortcut"):
                added = added + self.x0 @ leaf.take("shortcut")
            return h, added
        if kind == "Head":
            return h + added + leaf.take("bias"), added
        number, self.leaf_calls = self.leaf_calls, self.leaf_calls + 1
        if torch.is_grad_enabled() and \
                checkpoint_of(graph.case, number) is not None:
            f = compute_again(apply, kind, leaf, h)
        else:
            f = apply(kind, leaf, h)
        return (h + (f.detach() if constant else f)) * 0.5, added


class Window(nn.Module):
    """Of a unit: what is sharded. What it hands on is its own, so that nobody
    takes it for that of a window within it."""

    def __init__(self, graph, unit, leaves):
        super().__init__()
        self.leaves = nn.ModuleList(leaves)
        self.graph, self.unit = [graph], unit  # which is no module of it

    def forward(self, h, added):
        forward = self.graph[0].forward_now
        first, last = forward.windows[self.unit]
        h, added = forward.play(first, last + 1, h, added, self.unit)
        return with_zeros(h, self.leaves), added.view_as(added)


class GraphModel(nn.Module):
    """The root: `unit_modules` are what is sharded, by unit, in `order`."""

    def __init__(self, case, look, renamed=None, wraps=True):
        super().__init__()
        self.case, self.look, self.buffered = case, look, {}
        self.wraps = wraps  # else nobody shards it: no unit is a module
        self.root_unit = case.modules[0]["unit"]
        calls = case.json["graph"]["calls"]
        self.constant = set(case.json["graph"]["without_backward"])
        self.kinds = [m["class"] for m in case.modules]
        self.sequences = {}
        for which in ("train", "eval"):
            points = points_of(calls, which)
            self.sequences[which] = points, windows_of(case, points)
        self.make_windows(renamed)
        starts = self.sequences["train"][1]
        # A unit without a window in a pass is none that is prefetched there.
        self.order = sorted(self.unit_modules.keys() & starts.keys(),
                            key=lambda unit: (starts[unit][0], unit))
        self.forward_now = None

    def make_windows(self, renamed):
        case, made, of_unit = self.case, {}, {}
        leaf_of = {}
        for m, module in enumerate(case.modules):
            if case.parameters_of_module(m):
                leaf_of[m] = GraphLeaf(case, m, self.look, made, renamed)
            if module["unit"] != "none":
                of_unit.setdefault(module["unit"], []).extend(
                    [leaf_of[m]] if m in leaf_of else [])
        self.leaf_of = dict(leaf_of)  # no modules of the root
        self.own = nn.ModuleList(of_unit.pop(self.root_unit, []))
        if not self.wraps:
            trained = {case.modules[m]["unit"] for which, m in
                       self.sequences["train"][0] if m not in self.constant}
            self.own.extend(leaf for unit in set(of_unit) & trained
                            for leaf in of_unit.pop(unit))
            self.idle = nn.ModuleList(
                leaf for leaves in of_unit.values() for leaf in leaves)
            of_unit = {}
        self.place = {unit: i for i, unit in enumerate(of_unit)}
        self.blocks = nn.ModuleList(
            Window(self, unit, leaves) for unit, leaves in of_unit.items())
        self.unit_modules = dict(zip(of_unit, self.blocks))
        if self.root_unit != "none":
            self.unit_modules[self.root_unit] = self

    def window_of(self, unit):
        """What stands in its place now."""
        return self.blocks[self.place[unit]]

    def forward(self, xs):
        which = "train" if self.training else "eval"
        added = torch.zeros_like(xs[0])
        h, x = xs[0].clone(), xs[0]
        if torch.is_grad_enabled():
            # A backward goes through all windows, whatever they train.
            h.requires_grad_()
            added.requires_grad_()
        self.forward_now = Forward(self, x, which)
        h, _ = self.forward_now.play(
            0, len(self.forward_now.points), h, added, self.root_unit)
        self.forward_now = None
        return with_zeros(h, self.own)


def reshards(case, unit, otherwise):
    """Whether a unit is resharded behind its forward: some say so themselves.
    """
    graph = case.json.get("graph")
    own = graph["reshards"][unit] if graph and unit != "none" else 0
    return (otherwise, True, False)[own]

# SPDX-License-Identifier: Apache-2.0
"""adapter_models.py - the models of the workloads in PyTorch.

A model is a row of leaves, as conformance/models/ has them: each takes the
residual stream h and what lies between a norm and it, n, and returns those of
the two that it made, so that no unit hands on a tensor of another. A unit is
a leaf, a group of consecutive ones, or the root.
"""

import functools
import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

NORM_EPS = 1e-5
HEADS = {"odd": 1, "tied": 1, "tiny": 2, "tall": 2, "small": 4, "deep": 1,
         "even": 1}


def part_of(case, module):
    """Parts are what may be computed again: blocks of gpt, layers of mlp.
    None: it is in none of them."""
    of = case.modules[module]
    if case.workload in ("gpt", "lora"):
        blocks = [m for m, other in enumerate(case.modules)
                  if other["class"] == "Block"]
        return blocks.index(of["parent"]) if of["parent"] in blocks else None
    return module - 1 if case.workload == "mlp" else None


def tensor_of(values):
    """numpy has no bfloat16: it is uint16 there."""
    if values.dtype == np.uint16:
        return torch.from_numpy(values.view(np.int16).copy()).view(
            torch.bfloat16)
    return torch.from_numpy(values.copy())


def buffers_of(holder, case, module):
    """Registers those of a module: an attribute to each number."""
    found = {}
    for b, said in enumerate(case.buffers):
        if said["module"] == module:
            attribute = said["name"].rpartition(".")[2]
            holder.register_buffer(
                attribute, tensor_of(case.initial_buffers[said["name"]]),
                persistent=said["persists"])
            found[attribute] = b
    return found


class Leaf(nn.Module):
    """A module that has parameters: `index` is attribute to parameter, and
    `made` are those that are there, by number."""

    def __init__(self, case, module, look, made, renamed=None):
        super().__init__()
        self.case, self.look, self.index = case, look, {}
        self.called = {}  # otherwise in this life
        self.part = part_of(case, module)
        prefix = case.modules[module]["name"] + "."
        for p in case.parameters_of_module(module):
            name = case.parameters[p]["name"]
            attribute = name[len(prefix):].replace(".", "_")
            if p == renamed:
                self.called[attribute] = attribute + "_renamed"
                attribute = self.called[attribute]
            self.index[attribute] = p
            if case.original(p) not in made:
                made[p] = nn.Parameter(
                    torch.from_numpy(case.weights[name].copy()),
                    requires_grad=not case.is_frozen(p))
            setattr(self, attribute, made[case.original(p)])
        self.buffered = buffers_of(self, case, module)
        self.constant = not case.has_backward(module)

    def take(self, attribute):
        """A parameter as the forward sees it, seen by the record too. Models
        widen what has 16 bits: see the specification, Mixed precision."""
        attribute = self.called.get(attribute, attribute)
        w = self.look.weight(self.index[attribute], getattr(self, attribute))
        return (w.detach() if self.constant else w).float()

    def affine(self, x, name):
        y = x @ self.take(name + "_weight") + self.take(name + "_bias")
        if name + "_down" not in self.index:
            return y
        return y + x @ self.take(name + "_down") @ self.take(name + "_up")


class Relu(Leaf):
    """mlp: y = relu(x w)"""

    def forward(self, h, n, xs):
        x = xs[0] if h is None else h
        y = torch.relu(x.float() @ self.take("weight"))
        if self.buffered:
            self.track(y.detach())
        return y, None

    def track(self, y):
        """The mean of this forward, and 7/8 of what was with 1/8 of that."""
        mean = y.flatten(0, -2).mean(0)
        with self.look.buffers(self):
            self.last_mean.copy_(mean)
            self.running_mean.copy_(
                self.running_mean.float() * 0.875 + mean * 0.125)


class Term(Leaf):
    """linear: what came before + x w, with an x of its own"""

    def forward(self, h, n, xs):
        (p,) = self.index.values()
        x = xs[p].float()  # FairScale makes them float16
        part = x @ self.take("weight")
        return (part if h is None else h + part), None


class Embedding(Leaf):
    def forward(self, h, n, xs):
        ids = xs[0]
        words = F.embedding(ids, self.take("wte"))
        return words + self.take("wpe")[:ids.shape[1]], None


class Norm(Leaf):
    def forward(self, h, n, xs):
        gamma, beta = self.take("gamma"), self.take("beta")
        return None, F.layer_norm(h, gamma.shape, gamma, beta, NORM_EPS)


class Attention(Leaf):
    """A row of qkv has the queries of all heads, then the keys, the values."""

    def forward(self, h, n, xs):
        samples, time, width = h.shape
        heads = HEADS[self.case.size]
        q, k, v = (t.view(samples, time, heads, -1).transpose(1, 2)
                   for t in self.affine(n, "qkv").split(width, -1))
        o = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        o = o.transpose(1, 2).reshape(samples, time, width)
        return h + self.affine(o, "project"), None


class Mlp(Leaf):
    def forward(self, h, n, xs):
        up = F.gelu(self.affine(n, "up"), approximate="tanh")
        return h + self.affine(up, "down"), None


class Head(Leaf):
    """Tied, it is the embedding's, which has a row for each word."""

    def forward(self, h, n, xs):
        w = self.take("weight")
        return None, n @ (w.t() if self.case.is_tied else w)


LEAVES = {
    "mlp": {"Linear": Relu},
    "linear": {"Linear": Term},
    "gpt": {"Embedding": Embedding, "LayerNorm": Norm, "Linear": Head,
            "Attention": Attention, "MLP": Mlp},
}
LEAVES["lora"] = LEAVES["gpt"]


def checkpoint_of(case, part):
    """Parts with the same number are computed again together; None: what the
    part has computed is kept."""
    if part is None or case.recompute is None:
        return None
    how = case.recompute.removeprefix("recompute-")
    if how == "pair":
        return part // 2
    return None if how == "half" and part % 2 else part


def compute_again(function, *args):
    return checkpoint(function, *args, use_reentrant=False)


class Group(nn.Module):
    """Leaves that make one unit."""

    def __init__(self, leaves):
        super().__init__()
        self.leaves = nn.ModuleList(leaves)

    def forward(self, h, n, xs):
        made = None
        for leaf in self.leaves:
            new, n = leaf(h, n, xs)
            if new is not None:
                h = made = new
        return made, n


def part_is_unit(case, part, unit):
    """A part of several units is computed again around all of them."""
    return all(m["unit"] == unit for i, m in enumerate(case.modules)
               if case.parameters_of_module(i) and part_of(case, i) == part)


class Model(nn.Module):
    """The root: units one after the other, and between them the leaves that
    are the root's own. Modules that are units are in `unit_modules`."""

    def __init__(self, case, look, renamed=None):
        super().__init__()
        root_unit = case.modules[0]["unit"]
        children, self.unit_modules, made = [], {}, {}
        for m in range(len(case.modules)):
            if not case.parameters_of_module(m):
                continue
            module = case.modules[m]
            leaf = LEAVES[case.workload][module["class"]](
                case, m, look, made, renamed)
            unit = module["unit"]
            if unit == root_unit or not children or children[-1][0] != unit:
                children.append((unit, [leaf]))
            else:
                children[-1][1].append(leaf)
        blocks, self.checkpoints = [], []
        for unit, leaves in children:
            block = leaves[0] if len(leaves) == 1 else Group(leaves)
            parts = {leaf.part for leaf in leaves}
            part = parts.pop() if len(parts) == 1 else None
            number = checkpoint_of(case, part)
            if case.recompute == "recompute-block" and unit != root_unit and \
                    part_is_unit(case, part, unit):
                # Inside the unit, whose own hooks see nothing of it.
                block.forward = functools.partial(compute_again, block.forward)
                number = None
            self.checkpoints.append(number)
            if unit != root_unit:
                if unit in self.unit_modules:
                    raise ValueError(f"unit {unit} is not in one place")
                self.unit_modules[unit] = block
            blocks.append(block)
        if root_unit != "none":
            self.unit_modules[root_unit] = self
        self.order = sorted(self.unit_modules)
        self.blocks = nn.ModuleList(blocks)
        self.look, self.buffered = look, buffers_of(self, case, 0)

    def row(self, first, end, h, n, xs):
        for i in range(first, end):
            new, n = self.blocks[i](h, n, xs)
            h = h if new is None else new
        return h, n

    def forward(self, xs):
        if self.buffered:
            with self.look.buffers(self):
                self.count += 1
        h = n = None
        first, total = 0, len(self.blocks)
        while first < total:
            number, end = self.checkpoints[first], first + 1
            while end < total and number is not None and \
                    self.checkpoints[end] == number:
                end += 1
            play = self.row if number is None else functools.partial(
                compute_again, self.row)
            h, n = play(first, end, h, n, xs)
            first = end
        return h if n is None else n


def leaves_of(model):
    return [m for m in model.modules() if isinstance(m, Leaf)]


def holders_of(model):
    """Of buffers: (module, attribute), by number."""
    return {b: (module, name) for module in model.modules()
            for name, b in getattr(module, "buffered", {}).items()}


def weights_of(model):
    """What modules have as parameters at the moment, by index."""
    return {p: getattr(leaf, name) for leaf in leaves_of(model)
            for name, p in leaf.index.items()}


def tie_again(model):
    """Where each name was given a tensor of its own, on another device."""
    made = {}
    for leaf in leaves_of(model):
        for name, p in leaf.index.items():
            w = made.setdefault(leaf.case.original(p), getattr(leaf, name))
            setattr(leaf, name, w)


def ignored_in(model):
    """Parameters that nobody shards."""
    return {getattr(leaf, name) for leaf in leaves_of(model)
            for name, p in leaf.index.items() if leaf.case.is_ignored(p)}


def numel(case, p):
    return math.prod(case.parameters[p]["shape"])


def loss_of(case, model, batch, device):
    b = {k: torch.from_numpy(v).to(device) for k, v in batch.items()}
    if case.workload in ("gpt", "lora"):
        logits = model((b["id"],))
        return F.cross_entropy(logits.flatten(0, -2),
                                        b["target"].flatten().long())
    if case.workload in ("mlp", "graph"):
        return F.mse_loss(model((b["x"],)), b["target"])
    y = model(tuple(b[f"x{i}"] for i in range(len(case.parameters))))
    return (y * b["c"]).sum() / y.shape[0]


def groups_of(case, model, parameters, wholes):
    """By the case's group, and by whether the model says that weights decay.
    What an optimizer knows of a parameter is in the model, or `wholes` say
    whose it is: a flat one is of several."""
    of = {}
    for p, w in (*weights_of(model).items(), *wholes):
        of.setdefault(id(w), set()).add(
            (case.group_of(p), case.parameters[p]["decays"]))
    found = {(g, decays): [] for g in range(case.n_groups)
             for decays in (True, False)}
    for w in parameters:
        kinds = of.get(id(w), {(0, True)})
        if len({g for g, _ in kinds}) > 1:
            raise ValueError("parameters of several groups are one flat parameter")
        found[max(kinds)].append(w)
    return found


def numbers_of(case, group):
    """Of an optimizer: the group's own, or the usual ones."""
    own = case.groups.get
    usual = {"lr": case.lr, "decay": case.weight_decay, "momentum": 0.9,
             "beta1": 0.9, "beta2": 0.999, "eps": 1e-8}
    return {name: own(name, [x] * case.n_groups)[group]
            for name, x in usual.items()}


def make_optimizer(case, model, parameters, wholes=()):
    """Also with groups that have no parameters."""
    found, groups = groups_of(case, model, list(parameters), wholes), []
    for (g, decays), own in found.items():
        x = numbers_of(case, g)
        said = {"lr": x["lr"], "weight_decay": x["decay"] if decays else 0.0}
        if case.optimizer == "adamw":
            said |= {"betas": (x["beta1"], x["beta2"]), "eps": x["eps"]}
        else:
            said |= {"momentum": x["momentum"]
                     if case.optimizer == "momentum" else 0.0}
        if own or decays and not found[g, False]:
            groups.append({"params": own, "decays": decays, "group": g, **said})
    return (torch.optim.AdamW if case.optimizer == "adamw"
            else torch.optim.SGD)(groups, lr=case.lr)


STATES = {"sgd": (), "momentum": ("momentum_buffer",),
          "adamw": ("exp_avg", "exp_avg_sq")}

# SPDX-License-Identifier: Apache-2.0
"""check_names.py - what all wraps have in common: a parameter's names from
before it was wrapped, units, pieces."""

import torch

from check_record import DTYPES


class BadModel(Exception):
    """A sentence for whoever wrote the file."""


class Unit:
    """`inner`: what computes once the unit's weights are there, if that is not
    `module` itself; `fills`: a parameter without a gradient is reduced, too, as
    zeros."""

    def __init__(self, name, module, reshard, parameters, inner=None,
                 fills=False):
        self.name, self.module = name, module
        self.reshard, self.parameters = reshard, parameters
        self.inner = inner if inner is not None else module
        self.fills = fills


class Piece:
    """Elements from `first` on of parameter p, which has n, in a tensor of
    this rank."""

    def __init__(self, p, first, parameter, cut, n=None):
        self.p, self.first, self.parameter, self.cut = p, first, parameter, cut
        self.n = parameter.numel() if n is None else n

    def value(self):
        return self.cut(self.parameter)

    def gradient(self):
        g = self.parameter.grad
        return None if g is None else self.cut(g)

    def states(self, optimizer):
        """(key, elements of this piece or a scalar, the first of them)."""
        p = self.parameter
        for key, t in sorted(optimizer.state.get(p, {}).items()):
            if isinstance(t, torch.Tensor) and t.shape == p.shape and t.dim():
                yield key, self.cut(t), self.first
            elif isinstance(t, torch.Tensor):
                yield key, t, 0


class Entry:
    """A name of a parameter, which may have several: those have the same key.
    `tensor` is what an optimizer has of it."""

    def __init__(self, name, key, shape, tensor):
        self.name, self.key, self.shape = name, key, shape
        self.tensor = tensor


def plain_name(name):
    name = name.replace("_fsdp_wrapped_module.", "")
    name = name.replace("_checkpoint_wrapped_module.", "")
    name = name.replace("_orig_mod.", "")
    return name[len("module."):] if name.startswith("module.") else name


def entries_of(model, once=False):
    """Of a model whose parameters are tensors of their own."""
    for name, p in model.named_parameters(remove_duplicate=once):
        yield Entry(plain_name(name), id(p), p.shape, p)


def order_of(model):
    """The names of a model that is not wrapped yet."""
    return {e.name: i for i, e in enumerate(entries_of(model))}


def describe(record, entries, order):
    """The parameters into the record, in the order that they had unwrapped.
    Returns their numbers, by all names, and by the tensors that an optimizer
    has of them."""
    number, names, owned = {}, {}, {}
    for e in sorted(entries, key=lambda e: order.get(e.name, len(order))):
        is_new = e.key not in number
        p = number.setdefault(e.key, len(number))
        names[e.name] = p
        record.add("names", e.name, p)
        if is_new:
            owned.setdefault(id(e.tensor), []).append(p)
            record.add("parameters", e.name, e.shape[0] if e.shape else 1,
                       e.shape.numel(), dtype_name(e), e.tensor.requires_grad)
    return names, owned


def dtype_name(e):
    if e.tensor.dtype not in DTYPES:
        raise BadModel(f"parameter {e.name} is {e.tensor.dtype}")
    return DTYPES[e.tensor.dtype]


class Wrap:
    """A model, wrapped or not, and its parameters by their numbers."""

    name = "none"

    def __init__(self, model, record, order):
        self.model = model
        self.names, self.owned = describe(record, self.entries(), order)

    def entries(self):
        return entries_of(self.model)

    def units(self):
        return []

    def casts(self):
        """Names of modules whose arguments are cast."""
        return []

    def full(self, unit):
        """(number, weights) of a unit, while it is unsharded."""
        return []

    def held(self, optimizer):
        """(number, group) of what the optimizer has; -1: none of the
        model's."""
        for group, g in enumerate(optimizer.param_groups):
            for p in g["params"]:
                for number in self.owned.get(id(p), [-1]):
                    yield number, group

    def backward(self, loss):
        loss.backward()

    def forget(self):
        """Parameters become something else."""
        with torch.no_grad():
            for p in self.model.parameters():
                p.zero_()

    def live(self):
        """Bytes of whole weights that are there now."""
        return 0

    def name_collectives(self, player):
        """Has player.unit say whose collective comes next."""

# SPDX-License-Identifier: Apache-2.0
"""check_wraps.py - what there is to know of each way to shard a model.

A wrap says which units a model was cut into, which part of each parameter a
rank has, and how to reach a unit's whole weights while they are there.
"""

import contextlib

import torch


class BadModel(Exception):
    """A sentence for whoever wrote the file."""


class Unit:
    def __init__(self, name, module, reshard, parameters):
        self.name, self.module = name, module
        self.reshard, self.parameters = reshard, parameters


class Piece:
    """Elements from `first` on of parameter p, in a tensor of this rank."""

    def __init__(self, p, first, parameter, cut):
        self.p, self.first, self.parameter, self.cut = p, first, parameter, cut


def whole(t):
    return t.detach()


class Replicated:
    """DistributedDataParallel: nothing is sharded, all is reduced."""

    name = "ddp"

    def __init__(self, model, names):
        self.model, self.names = model, names

    def units(self):
        return []

    def pieces(self):
        for name, p in named(self.model):
            yield Piece(self.names[name], 0, p, whole)

    def full(self, unit):
        return []

    def live(self):
        return 0

    @contextlib.contextmanager
    def sync(self, on):
        if on:
            yield
        else:
            with self.model.no_sync():
                yield


class FullyShard:
    """PyTorch FSDP2."""

    name = "fully_shard"

    def __init__(self, model, names):
        self.model, self.names = model, names
        self.module_name = {id(m): n for n, m in model.named_modules()}

    def groups(self):
        """(module, its parameter groups), the root first."""
        from torch.distributed.fsdp import FSDPModule
        for module in self.model.modules():
            if isinstance(module, FSDPModule):
                state = module._get_fsdp_state()
                groups = getattr(state, "_fsdp_param_groups", None)
                if groups is None:  # before 2.10 there was one, or none
                    groups = [state._fsdp_param_group]
                yield module, [g for g in groups if g is not None]

    def index_of(self, param):
        info = param._module_info
        prefix = self.module_name[id(info.module)]
        return self.names[f"{prefix}.{info.param_name}" if prefix
                          else info.param_name]

    def units(self):
        units = []
        for module, groups in self.groups():
            for group in groups:
                group.unit = len(units)
                units.append(Unit(
                    self.module_name[id(group.modules[0])], module,
                    group.post_forward_mesh_info is not None,
                    [self.index_of(p) for p in group.fsdp_params]))
        return units

    def pieces(self):
        from torch.distributed.tensor import DTensor, Shard
        for name, p in named(self.model):
            if not isinstance(p, DTensor):
                yield Piece(self.names[name], 0, p, whole)
                continue
            if tuple(p.placements) != (Shard(0),):
                raise BadModel(f"parameter {name} is placed {p.placements}: "
                               "only one mesh dimension, sharded in dimension "
                               "0, can be judged")
            rows = p.shape[0]
            row = p.numel() // rows if rows else 0
            chunk = -(-rows // p.device_mesh.size())
            first = min(rows, p.device_mesh.get_local_rank() * chunk) * row
            yield Piece(self.names[name], first, p,
                        lambda t: t.to_local().detach())

    def full(self, unit):
        """(index, weights) of a unit, while it is unsharded."""
        for _, groups in self.groups():
            for group in groups:
                if getattr(group, "unit", None) == unit:
                    for param in group.fsdp_params:
                        yield self.index_of(param), param.unsharded_param

    def live(self):
        """Bytes of whole weights that are there now."""
        storages = {}
        for _, groups in self.groups():
            for group in groups:
                for param in group.fsdp_params:
                    for t in getattr(param, "all_gather_outputs", ()):
                        s = t.untyped_storage()
                        storages[s._cdata] = s.nbytes()
        return sum(storages.values())

    @contextlib.contextmanager
    def sync(self, on):
        for module, _ in self.groups():
            module.set_requires_gradient_sync(on, recurse=False)
        yield


def named(model):
    """Parameters by the names that they had before they were wrapped."""
    for name, p in model.named_parameters():
        yield plain_name(name), p


def plain_name(name):
    name = name.replace("_fsdp_wrapped_module.", "")
    name = name.replace("_checkpoint_wrapped_module.", "")
    name = name.replace("_orig_mod.", "")
    return name[len("module."):] if name.startswith("module.") else name


def describe(record, model):
    """The parameters into the record. Returns their numbers, by all names."""
    numbers, first_name = {}, {}
    for name, p in model.named_parameters(remove_duplicate=False):
        name = plain_name(name)
        numbers[name] = first_name.setdefault(id(p), len(first_name))
        record.add("names", name, numbers[name])
    for name, p in named(model):
        record.add("parameters", name, p.shape[0] if p.dim() else 1,
                   p.numel(), dtype_name(name, p), p.requires_grad)
    return numbers


def dtype_name(name, p):
    from check_record import DTYPES
    if p.dtype not in DTYPES:
        raise BadModel(f"parameter {name} is {p.dtype}")
    return DTYPES[p.dtype]


def wrap_of(model, names):
    if isinstance(model, torch.nn.parallel.DistributedDataParallel):
        return Replicated(model, names)
    from torch.distributed.fsdp import FSDPModule # not before 2.6
    if any(isinstance(m, FSDPModule) for m in model.modules()):
        return FullyShard(model, names)
    raise BadModel("shard() left a model that nothing shards: neither "
                   "fully_shard nor DistributedDataParallel")

# SPDX-License-Identifier: Apache-2.0
"""check_wraps.py - what there is to know of each way to shard a model.

A wrap says which units a model was cut into, which part of each parameter a
rank has, and how to reach a unit's whole weights while they are there.
"""

import contextlib

import torch

from check_names import BadModel, Piece, Unit, Wrap, entries_of
from check_zero import Zero, is_engine


def whole(t):
    return t.detach()


class Replicated(Wrap):
    """DistributedDataParallel: nothing is sharded, all is reduced."""

    name = "ddp"

    def pieces(self):
        for e in entries_of(self.model, once=True):
            yield Piece(self.names[e.name], 0, e.tensor, whole)

    @contextlib.contextmanager
    def sync(self, on):
        if on:
            yield
        else:
            with self.model.no_sync():
                yield


class FullyShard(Wrap):
    """PyTorch FSDP2."""

    name = "fully_shard"

    def __init__(self, model, record, order):
        super().__init__(model, record, order)
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
                    [self.index_of(p) for p in group.fsdp_params],
                    fills=getattr(group, "reduce_scatter_unused_params",
                                  False)))
        return units

    def casts(self):
        return [unit.name for unit in self.units()]

    def pieces(self):
        from torch.distributed.tensor import DTensor, Shard
        for e in entries_of(self.model, once=True):
            name, p = e.name, e.tensor
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
        for _, groups in self.groups():
            for group in groups:
                if getattr(group, "unit", None) == unit:
                    for param in group.fsdp_params:
                        yield self.index_of(param), param.unsharded_param

    def live(self):
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

    def name_collectives(self, player):
        from torch.distributed.fsdp._fully_shard._fsdp_param_group import (
            FSDPParamGroup,
        )
        for method in ("unshard", "post_backward"):
            real = getattr(FSDPParamGroup, method)

            def call(group, *args, real=real, **kwargs):
                before, player.unit = player.unit, getattr(group, "unit", -1)
                try:
                    return real(group, *args, **kwargs)
                finally:
                    player.unit = before

            setattr(FSDPParamGroup, method, call)


def wrap_of(model, record, order):
    if is_engine(model):
        return Zero(model, record, order)
    if isinstance(model, torch.nn.parallel.DistributedDataParallel):
        return Replicated(model, record, order)
    from torch.distributed.fsdp import FSDPModule # not before 2.6
    if any(isinstance(m, FSDPModule) for m in model.modules()):
        return FullyShard(model, record, order)
    from check_flat import Flat, is_flat
    if is_flat(model):
        return Flat(model, record, order)
    raise BadModel("shard() left a model that nothing shards: neither "
                   "fully_shard nor FullyShardedDataParallel nor "
                   "DistributedDataParallel, and no DeepSpeedEngine")

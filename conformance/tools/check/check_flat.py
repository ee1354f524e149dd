# SPDX-License-Identifier: Apache-2.0
"""check_flat.py - FSDP1: units whose parameters lie one behind the other in a
flat one, of which each rank has an equal part."""

import contextlib

import torch
from torch.distributed.fsdp import FullyShardedDataParallel as Fsdp
from torch.distributed.fsdp import ShardingStrategy

from check_names import (
    BadModel, Entry, Piece, Unit, Wrap, entries_of, plain_name,
)

KNOWN = (ShardingStrategy.FULL_SHARD, ShardingStrategy.SHARD_GRAD_OP)


def is_flat(model):
    return any(isinstance(m, Fsdp) for m in model.modules())


class Part:
    """The i-th parameter of a flat one."""

    def __init__(self, flat, i, name):
        self.entry = Entry(
            name, (id(flat), i), flat._shapes[i],
            flat._params[i] if flat._params is not None else flat)
        mine = flat._shard_param_infos[i]
        self.first = mine.intra_param_start_idx or 0
        self.n = mine.numel_in_shard or 0
        self.begin = mine.offset_in_shard or 0
        self.is_kept = flat._params is not None  # as a tensor of its own

    def cut(self, t):
        t = t.detach().reshape(-1)
        return t if self.is_kept else t[self.begin:self.begin + self.n]


class Flat(Wrap):
    """PyTorch FSDP1, with use_orig_params or without."""

    def __init__(self, model, record, order):
        self.model = model
        for name, module in self.modules():
            refuse_unknown(name, module)
        kept = any(m._use_orig_params for _, m in self.modules())
        self.name = "fsdp1" if kept else "fsdp1-flat"
        super().__init__(model, record, order)

    def modules(self):
        """(name, module), those around others first."""
        for name, module in self.model.named_modules():
            if isinstance(module, Fsdp):
                yield plain_name(name + ".")[:-1], module

    def handles(self):
        """(name, module, its handle)."""
        for name, module in self.modules():
            if module._handle is not None:
                yield name, module, module._handle

    def entries(self):
        found = set()
        for name, _, handle in self.handles():
            mine = [part.entry for part in self.parts(name, handle)]
            found.update(id(e.tensor) for e in mine)
            yield from mine
            first = {e.name: e for e in mine}
            for leaf, _, path, leaf1, _, path1 in \
                    handle.flat_param._shared_param_infos:
                e = first[self.joined(name, path1, leaf1)]
                yield Entry(self.joined(name, path, leaf), e.key, e.shape,
                            e.tensor)
        for e in entries_of(self.model):
            if id(e.tensor) not in found:  # in no unit
                yield e

    @staticmethod
    def joined(*path):
        return plain_name(".".join(x for x in path if x))

    def parts(self, name, handle):
        return [Part(handle.flat_param, i, self.joined(name, path, leaf))
                for i, (leaf, _, path) in
                enumerate(handle.flat_param._param_infos)]

    def units(self):
        units = []
        for name, module, handle in self.handles():
            handle.unit = len(units)
            # The root stays whole from its forward to its backward.
            reshard = module.sharding_strategy == \
                ShardingStrategy.FULL_SHARD and not module._is_root
            units.append(Unit(
                name, module, reshard,
                [self.names[p.entry.name] for p in self.parts(name, handle)],
                inner=module._fsdp_wrapped_module))
        return units

    def casts(self):
        outer = {id(m) for m in self.roots()}
        return [name for name, m in self.modules()
                if (m.mixed_precision.cast_root_forward_inputs
                    if id(m) in outer else
                    m.mixed_precision.cast_forward_inputs)]

    def pieces(self):
        found = set()
        for name, _, handle in self.handles():
            for part in self.parts(name, handle):
                e = part.entry
                found.add(id(e.tensor))
                yield Piece(self.names[e.name], part.first, e.tensor,
                            part.cut, e.shape.numel())
        for e in entries_of(self.model, once=True):
            if id(e.tensor) not in found:
                yield Piece(self.names[e.name], 0, e.tensor,
                            torch.Tensor.detach)

    def full(self, unit):
        """What modules have in the places of their parameters now. All of a
        flat parameter gets a gradient, or nothing: what is frozen in it is not
        looked at."""
        for name, _, handle in self.handles():
            if handle.unit != unit:
                continue
            for part, (leaf, module, _) in zip(self.parts(name, handle),
                                               handle.flat_param._param_infos):
                e, w = part.entry, getattr(module, leaf)
                yield self.names[e.name], \
                    w if e.tensor.requires_grad else w.detach()

    def live(self):
        storages = {}
        for _, _, handle in self.handles():
            for name in ("_full_param_padded", "_full_prec_full_param_padded"):
                whole = getattr(handle.flat_param, name, None)
                if whole is not None:
                    s = whole.untyped_storage()
                    storages[s._cdata] = s.nbytes()
        return sum(storages.values())

    def roots(self):
        inner = {id(m) for _, outer in self.modules()
                 for m in outer.modules() if m is not outer}
        return [m for _, m in self.modules() if id(m) not in inner]

    @contextlib.contextmanager
    def sync(self, on):
        if not on and any(m.sharding_strategy != ShardingStrategy.FULL_SHARD
                          for _, m in self.modules()):
            raise BadModel("SHARD_GRAD_OP keeps units whole between "
                           "microbatches: with MICROBATCHES = 1 it can be "
                           "judged")
        with contextlib.ExitStack() as stack:
            for root in self.roots() if not on else ():
                stack.enter_context(root.no_sync())
            yield

    def name_collectives(self, player):
        from torch.distributed.fsdp import _runtime_utils
        for function in ("_unshard", "_reduce_grad"):
            real = getattr(_runtime_utils, function)

            def call(state, handle, *args, real=real, **kwargs):
                before, player.unit = player.unit, getattr(handle, "unit", -1)
                try:
                    return real(state, handle, *args, **kwargs)
                finally:
                    player.unit = before

            setattr(_runtime_utils, function, call)


def refuse_unknown(name, module):
    where = f"FullyShardedDataParallel of {name or 'the whole model'}"
    if module.sharding_strategy not in KNOWN:
        raise BadModel(f"{where} has {module.sharding_strategy.name}: "
                       "FULL_SHARD and SHARD_GRAD_OP can be judged")
    if module.cpu_offload.offload_params:
        raise BadModel(f"{where} offloads parameters: that cannot be judged")
    if module.mixed_precision.buffer_dtype not in (None, torch.float32):
        raise BadModel(f"{where} casts buffers (buffer_dtype): that cannot be "
                       "judged")

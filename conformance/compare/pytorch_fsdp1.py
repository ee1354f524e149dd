# SPDX-License-Identifier: Apache-2.0
"""PyTorch FSDP1 (FullyShardedDataParallel) as an engine of the suite."""

import contextlib
import warnings

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel as Fsdp
from torch.distributed.fsdp import ShardingStrategy
from torch.distributed.fsdp import _runtime_utils

from adapter_torch import Piece, cut_flat, main

STRATEGY = {
    "full-shard": ShardingStrategy.FULL_SHARD,
    "shard-grad-op": ShardingStrategy.SHARD_GRAD_OP,
    "no-shard": ShardingStrategy.NO_SHARD,
    "hybrid-shard": ShardingStrategy.HYBRID_SHARD,
    "hybrid-shard-zero2": ShardingStrategy._HYBRID_SHARD_ZERO2,
}
WITHOUT_RESHARD = {"full-shard": "shard-grad-op",
                   "hybrid-shard": "hybrid-shard-zero2"}


class Fsdp1:
    """PyTorch FSDP1 (FullyShardedDataParallel)."""

    # The root is never resharded after its forward: no claim reshard-root.
    name = "pytorch-fsdp1"
    claims = [
        "flat", "full-shard", "shard-grad-op", "no-shard", "hybrid-shard",
        "hybrid-shard-zero2", "keep-root", "no-sync", "eval", "again", "sgd",
        "momentum", "adamw", "fold-any", "workload-mlp", "workload-linear",
        "wrap-whole", "wrap-layer", "wrap-pair",
    ]

    def open(self, life):
        """Process groups, before anything is looked at."""
        case = life.case
        warnings.simplefilter("ignore")
        self.mesh = None
        if case.strategy.startswith("hybrid"):
            self.mesh = init_device_mesh(
                life.device, (case.replicas, case.shards),
                mesh_dim_names=("replicate", "shard"))
            life.groups[self.mesh.get_group("replicate")] = "replicate"
            life.groups[self.mesh.get_group("shard")] = "shard"
        self.name_units(life.look)

    @staticmethod
    def name_units(look):
        """Whose collective it is: a handle's own."""
        for function in ("_unshard", "_reduce_grad", "_reduce_grad_no_shard"):
            real = getattr(_runtime_utils, function)

            def call(state, handle, *args, real=real, **kwargs):
                before, look.unit = look.unit, getattr(handle, "unit", "none")
                try:
                    return real(state, handle, *args, **kwargs)
                finally:
                    look.unit = before

            setattr(_runtime_utils, function, call)

    def shard(self, life, plain):
        case = life.case
        name = case.strategy
        if life.fault == "no-reshard":
            name = WITHOUT_RESHARD.get(name, name)

        def wrap(module):
            return Fsdp(module, sharding_strategy=STRATEGY[name],
                        device_mesh=self.mesh, use_orig_params=False,
                        device_id=torch.device(life.device))

        for unit, module in plain.unit_modules.items():
            if module is plain:
                continue
            for i, block in enumerate(plain.blocks):
                if block is module:
                    plain.blocks[i] = wrap(module)
                    plain.blocks[i]._handle.unit = unit
        model = wrap(plain)
        if model._handle is not None:
            model._handle.unit = case.modules[0]["unit"]
        group = model.process_group
        life.groups.setdefault(
            group, "replicate" if case.strategy == "no-shard" else "shard")
        for module in model.modules():
            if isinstance(module, Fsdp):
                life.groups.setdefault(
                    module.process_group,
                    "replicate" if case.strategy == "no-shard" else "shard")
        return model

    def parameters(self, life):
        return list(life.model.parameters())

    @contextlib.contextmanager
    def sync(self, life, on):
        with contextlib.nullcontext() if on else life.model.no_sync():
            yield

    def pieces(self, life):
        """A unit's parameters lie one behind the other in its flat one, of
        which this rank has an equal part."""
        case = life.case
        handles = {m._handle.unit: m._handle for m in life.model.modules()
                   if isinstance(m, Fsdp) and m._handle is not None}
        found = []
        for unit, handle in handles.items():
            flat = handle.flat_param
            chunk = flat.numel()
            begin = (life.rank % case.shards) * chunk if case.shards > 1 else 0
            at = 0
            for p in case.parameters_of(unit):
                n = 1
                for extent in case.parameters[p]["shape"]:
                    n *= extent
                first, last = max(at, begin), min(at + n, begin + chunk)
                if first < last:
                    found.append(Piece(p, first - at, flat,
                                       cut_flat(first - begin, last - first)))
                at += n
        return sorted(found, key=lambda piece: piece.p)


if __name__ == "__main__":
    main(Fsdp1())

# SPDX-License-Identifier: Apache-2.0
"""PyTorch DistributedDataParallel as an engine of the suite: the control,
which shards nothing."""

import contextlib

from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import (
    allreduce_hook,
)
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from adapter_torch import Piece, main


class Ddp:
    """PyTorch DistributedDataParallel: no sharding."""

    name = "pytorch-ddp"
    claims = [
        "flat", "per-parameter", "no-shard", "no-sync", "eval", "again",
        "sgd", "momentum", "adamw", "fold-any", "workload-mlp",
        "workload-linear", "wrap-whole", "wrap-layer",
    ]

    def open(self, life):
        life.groups[dist.group.WORLD] = "replicate"
        life.groups[None] = "replicate"

    def shard(self, life, plain):
        """A bucket for each unit: one for all of the model, or one for each
        layer, by a bucket size that no layer fits in."""
        case, look = life.case, life.look
        model = DistributedDataParallel(
            plain, init_sync=False,
            bucket_cap_mb_list=[25] if case.n_units == 1 else
            [1 / (1 << 20)] * case.n_units)
        units = {id(m.weight): case.unit_of(m.p) for m in plain.modules()
                 if hasattr(m, "p")}

        def hook(group, bucket):
            """PyTorch's own, seen through: it is what runs without a hook."""
            names = {units[id(p)] for p in bucket.parameters()}
            unit = names.pop() if len(names) == 1 else "none"
            n, dtype = bucket.buffer().numel(), bucket.buffer().dtype
            look.unit = unit
            look.saw("all-reduce", dist.group.WORLD, n, dtype)
            look.unit = "none"
            look.spoil_input(bucket.buffer())
            look.inside = True  # it has been noted
            try:
                if look.fault != "no-average":
                    return allreduce_hook(group, bucket)
                work = dist.all_reduce(bucket.buffer(), async_op=True)
                return work.get_future().then(lambda f: f.value()[0])
            finally:
                look.inside = False

        model.register_comm_hook(None, hook)
        return model

    def parameters(self, life):
        return list(life.model.parameters())

    @contextlib.contextmanager
    def sync(self, life, on):
        with contextlib.nullcontext() if on else life.model.no_sync():
            yield

    def pieces(self, life):
        by_p = {m.p: m.weight for m in life.model.modules()
                if hasattr(m, "p")}
        for p in sorted(by_p):
            yield Piece(p, 0, by_p[p], lambda t: t.reshape(-1))


if __name__ == "__main__":
    main(Ddp())

# SPDX-License-Identifier: Apache-2.0
"""PyTorch DistributedDataParallel as an engine of the suite: the control,
which shards nothing."""

from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import (
    allreduce_hook,
)
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.nn.parallel.distributed import _BucketCapacityConfig

from adapter_models import numel, weights_of
from adapter_ranks import main
from adapter_torch import Engine, Piece


class Ddp(Engine):
    """PyTorch DistributedDataParallel: no sharding."""

    name = "pytorch-ddp"
    claims = [
        "flat", "per-parameter", "no-shard", "no-sync", "eval", "again",
        "sgd", "momentum", "adamw", "fold-any", "workload-mlp",
        "workload-linear", "workload-gpt", "wrap-whole", "wrap-layer",
    ]

    def open(self, life):
        life.groups[dist.group.WORLD] = "replicate"
        life.groups[None] = "replicate"

    def shard(self, life, plain):
        """A bucket for each unit: a bucket is full with all of it. DDP takes
        one list of sizes in the order of parameters for the first backward,
        and in that of gradients for the others: it gets both."""
        case, look = life.case, life.look
        sizes = [4 * sum(numel(case, p) for p in case.parameters_of(unit))
                 for unit in range(case.n_units)]
        _BucketCapacityConfig.compute_bucket_size_limits = (
            lambda config, **kwargs: (sizes, sizes[::-1]))
        model = DistributedDataParallel(plain, init_sync=False)
        units = {id(w): case.unit_of(p)
                 for p, w in weights_of(plain).items()}

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

    def pieces(self, life):
        for p, w in sorted(weights_of(life.model).items()):
            yield Piece(p, 0, w, lambda t: t.reshape(-1))


if __name__ == "__main__":
    main(Ddp())

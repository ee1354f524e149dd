# SPDX-License-Identifier: Apache-2.0
"""DistributedDataParallel: an embedding with a greatest norm scales, in its
forward, the rows that it uses. Ranks use different ones, and nothing tells the
others: replicas differ from the first forward on."""

import torch
import torch.distributed as dist
from two_ranks import play


def main(rank):
    model = torch.nn.parallel.DistributedDataParallel(
        torch.nn.Embedding(2, 3, max_norm=0.5))
    model(torch.tensor([rank])).sum().backward()
    weight = model.module.weight.detach()
    other = weight.clone()
    dist.broadcast(other, 0)
    if rank == 1:
        print(f"norms of two rows, on rank 0: {other.norm(dim=1).tolist()}, on "
              f"rank 1: {weight.norm(dim=1).tolist()}")
        assert not torch.equal(weight, other)


if __name__ == "__main__":
    play(main)

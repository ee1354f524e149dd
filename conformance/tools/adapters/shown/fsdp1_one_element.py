# SPDX-License-Identifier: Apache-2.0
"""FSDP1: a unit of one element. Its shard is as large as the whole, and the
gradient that is there from a microbatch before is taken for one that is not
reduced yet (prepare_gradient_for_backward compares sizes): it is averaged once
more. With two ranks the first of two microbatches counts half."""

import torch
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy
from two_ranks import play


class Scale(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.w = nn.Parameter(torch.ones(n))

    def forward(self, x):
        return (x * self.w).sum()


def reduced(n):
    """Of the first element, of all ranks."""
    model = FullyShardedDataParallel(
        Scale(n), sharding_strategy=ShardingStrategy.FULL_SHARD,
        device_id=torch.device("cpu"))
    for x in (8.0, 1.0):
        model(torch.full((n,), x)).backward()
    return next(model.parameters()).grad[0].item()


def main(rank):
    one, two = reduced(1), reduced(2)
    if rank == 0:
        print(f"8 + 1: {one} of one element, {two} of two")
        assert (one, two) == (5.0, 9.0)  # 9 is right


if __name__ == "__main__":
    play(main)

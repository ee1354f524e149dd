# SPDX-License-Identifier: Apache-2.0
"""FSDP2, as it is by default, and FSDP1 with SHARD_GRAD_OP: an evaluation
between a backward and its step leaves weights gathered, and the next forward
computes with them: with those from before the step."""

import torch
from torch.distributed.fsdp import (
    FullyShardedDataParallel, ShardingStrategy, fully_shard,
)
from two_ranks import layers, play


def flat(model):
    return FullyShardedDataParallel(
        model, sharding_strategy=ShardingStrategy.SHARD_GRAD_OP,
        device_id=torch.device("cpu"))


def losses(shard, evaluates):
    """Before a step, behind it, and once more."""
    model = shard(layers(1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.125)
    x = torch.ones(1, 4)
    loss = model(x).sum()
    loss.backward()
    if evaluates:
        with torch.no_grad():
            model(x)
    optimizer.step()
    optimizer.zero_grad()
    behind = model(x).sum()
    behind.backward()
    return loss.item(), behind.item(), model(x).sum().item()


def main(rank):
    got = [losses(shard, evaluates) for shard in (fully_shard, flat)
           for evaluates in (False, True)]
    if rank == 0:
        print(f"losses before and behind a step, and then: FSDP2 {got[0]}, with "
              f"an evaluation {got[1]}; FSDP1 {got[2]}, {got[3]}")
    right, stale = (16.0, 14.0, 14.0), (16.0, 16.0, 14.0)
    assert got == [right, stale, right, stale]  # an evaluation changes nothing


if __name__ == "__main__":
    play(main)

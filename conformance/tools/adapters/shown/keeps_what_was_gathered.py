# SPDX-License-Identifier: Apache-2.0
"""FSDP1 and FSDP2 without resharding behind the forward: what an evaluation has
gathered stays, and the next forward gathers nothing; FSDP1 so behind a
microbatch of no_sync."""

import torch
from torch.distributed.fsdp import FullyShardedDataParallel as Fsdp
from torch.distributed.fsdp import ShardingStrategy, fully_shard
from two_ranks import collectives, gathers, layers, play


def forward_gathers(model):
    with collectives() as seen:
        loss = model(torch.ones(1, 4)).sum()
    loss.backward()
    return gathers(seen)


def evaluated(model):
    with torch.no_grad():
        model(torch.ones(1, 4))
    return forward_gathers(model)


def main(rank):
    two = layers(2)
    for layer in two:
        fully_shard(layer, reshard_after_forward=False)
    fully_shard(two, reshard_after_forward=False)
    one = layers(2)
    for i in range(2):
        one[i] = Fsdp(one[i], device_id=torch.device("cpu"),
                      sharding_strategy=ShardingStrategy.SHARD_GRAD_OP)
    one = Fsdp(one, device_id=torch.device("cpu"),
               sharding_strategy=ShardingStrategy.SHARD_GRAD_OP)
    got = [forward_gathers(two), evaluated(two), forward_gathers(one),
           evaluated(one)]
    with one.no_sync():
        one(torch.ones(1, 4)).sum().backward()
    got.append(forward_gathers(one))
    if rank == 0:
        print(f"all-gathers of a forward over 2 layers: FSDP2 {got[0]}, behind "
              f"an evaluation {got[1]}; FSDP1 {got[2]}, {got[3]}, behind no_sync "
              f"{got[4]}")
    assert got == [2, 0, 2, 0, 0]


if __name__ == "__main__":
    play(main)

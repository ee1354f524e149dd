# SPDX-License-Identifier: Apache-2.0
"""FSDP1: NO_SHARD with a reduction in 16 bits. Each microbatch that is reduced
rounds the sum so far to 16 bits once more; the sharded strategies do not."""

import torch
from torch.distributed.fsdp import (
    FullyShardedDataParallel, MixedPrecision, ShardingStrategy,
)
from two_ranks import layers, play


def reduced(strategy):
    model = FullyShardedDataParallel(
        layers(1), sharding_strategy=strategy, device_id=torch.device("cpu"),
        mixed_precision=MixedPrecision(reduce_dtype=torch.bfloat16))
    for x in (256.0, 1.0):
        model(torch.full((1, 4), x)).sum().backward()
    return next(model.parameters()).grad.flatten()[0].item()


def main(rank):
    whole = reduced(ShardingStrategy.NO_SHARD)
    sharded = reduced(ShardingStrategy.FULL_SHARD)
    if rank == 0:
        print(f"256 + 1: {whole} without shards, {sharded} with them")
    assert (whole, sharded) == (256.0, 257.0)  # 257 is right


if __name__ == "__main__":
    play(main)

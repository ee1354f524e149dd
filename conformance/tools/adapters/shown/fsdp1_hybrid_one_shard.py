# SPDX-License-Identifier: Apache-2.0
"""FSDP1: HYBRID_SHARD with one shard a replica never averages: it becomes
NO_SHARD over the shard's group, which is one rank. Gradients are divided by a
part of the replicas all the same, and the replicas drift apart."""

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy
from two_ranks import layers, play


def main(rank):
    mesh = init_device_mesh("cpu", (2, 1), mesh_dim_names=("r", "s"))
    model = FullyShardedDataParallel(
        layers(1), device_mesh=mesh, device_id=torch.device("cpu"),
        sharding_strategy=ShardingStrategy.HYBRID_SHARD)
    model(torch.full((1, 4), rank + 1.0)).sum().backward()
    got = next(model.parameters()).grad.flatten()[0].item()
    print(f"rank {rank}, of gradients 1 and 2: {got}", flush=True)
    assert got == (rank + 1) / 2  # 1.5 on both is right


if __name__ == "__main__":
    play(main)

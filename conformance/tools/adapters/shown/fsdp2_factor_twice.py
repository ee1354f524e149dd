# SPDX-License-Identifier: Apache-2.0
"""FSDP2: with one shard, and the sum forced, a divide factor is applied twice:
where the reduce-scatter of one rank is a copy, and behind the all-reduce."""

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from two_ranks import layers, play


def main(rank):
    mesh = init_device_mesh("cpu", (2, 1), mesh_dim_names=("r", "s"))
    model = layers(1)
    fully_shard(model, mesh=mesh)
    model.set_force_sum_reduction_for_comms(True)
    model.set_gradient_divide_factor(4.0)
    model(torch.full((1, 4), 8.0)).sum().backward()
    got = model[0].weight.grad.to_local()[0, 0].item()
    if rank == 0:
        print(f"8 on each of 2 ranks, over 4: {got}")
    assert got == 1.0  # 4.0 is right


if __name__ == "__main__":
    play(main)

# SPDX-License-Identifier: Apache-2.0
"""FSDP2: with one shard and a reduction in fp16 a divide factor is applied
twice, without the sum being forced: where the reduce-scatter of one rank is a
copy, and in the divisions around the all-reduce."""

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from two_ranks import layers, play


def main(rank):
    mesh = init_device_mesh("cpu", (2, 1), mesh_dim_names=("r", "s"))
    model = layers(1)
    fully_shard(model, mesh=mesh, mp_policy=MixedPrecisionPolicy(
        param_dtype=torch.float16, reduce_dtype=torch.float16))
    model.set_gradient_divide_factor(4.0)
    model(torch.ones(1, 4)).sum().backward()
    got = model[0].weight.grad.to_local()[0, 0].item()
    if rank == 0:
        print(f"1 on each of 2 ranks, over 4: {got}")
    assert got == 0.125  # 0.5 is right


if __name__ == "__main__":
    play(main)

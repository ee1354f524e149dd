# SPDX-License-Identifier: Apache-2.0
"""FSDP2: where the shard degree is 1 a parameter is there twice while its unit
is unsharded: nothing is gathered, but the shard is copied."""

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from two_ranks import collectives, gathers, layers, play


def main(rank):
    mesh = init_device_mesh("cpu", (2, 1), mesh_dim_names=("replicas", "shards"))
    model = fully_shard(layers(1), mesh=mesh)
    weight, = model.parameters()
    shard = weight.to_local()
    with collectives() as seen:
        model(torch.ones(1, 4))
        model.unshard()
    whole, = model.parameters()
    apart = whole.data_ptr() != shard.data_ptr()
    bytes_ = shard.nbytes + whole.untyped_storage().nbytes()
    if rank == 0:
        print(f"{gathers(seen)} all-gathers; {bytes_} bytes are held of a "
              f"parameter of {shard.nbytes}")
    assert apart and gathers(seen) == 0 and bytes_ == 2 * shard.nbytes


if __name__ == "__main__":
    play(main)

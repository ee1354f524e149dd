# SPDX-License-Identifier: Apache-2.0
"""DCP: of a buffer of which each rank has values of its own one rank's are
saved, of the next buffer another rank's, and all ranks are given those."""

import tempfile

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.fsdp import fully_shard
from two_ranks import layers, play


def main(rank):
    model = layers(1)
    for name in ("one", "two"):
        model.register_buffer(name, torch.tensor([float(rank)]))
    fully_shard(model)
    folder = [tempfile.mkdtemp()]
    dist.broadcast_object_list(folder)
    dcp.save(model.state_dict(), checkpoint_id=folder[0])
    dcp.load(model.state_dict(), checkpoint_id=folder[0])  # in place
    got = model.one.item(), model.two.item()
    if rank == 0:
        print(f"two buffers, 0 on rank 0 and 1 on rank 1, loaded: {got}")
    assert got == (0.0, 1.0)  # all rank 0's, or each rank's own, or an error


if __name__ == "__main__":
    play(main)

# SPDX-License-Identifier: Apache-2.0
"""FSDP2: all-gathers that nothing needs. A backward "prefetches" the unit before
the first one that needs a backward: the last of a frozen beginning, and what an
evaluation (or a pass that trained nothing) has left in the list of forwards."""

import torch
from torch.distributed.fsdp import fully_shard
from two_ranks import collectives, gathers, layers, play


def sharded():
    model = layers(4)
    for layer in model:
        fully_shard(layer, reshard_after_forward=True)
    fully_shard(model)
    return model


def backward_gathers(model):
    x = torch.ones(1, 4)
    loss = model(x).sum()
    with collectives() as seen:
        loss.backward()
    return gathers(seen)


def main(rank):
    model = sharded()
    usual = backward_gathers(model)
    with torch.no_grad():
        model(torch.ones(1, 4))
    behind_eval = backward_gathers(model)
    model = sharded()
    for layer in model[:2]:
        layer.weight.requires_grad_(False)
    frozen = backward_gathers(model)
    if rank == 0:
        print(f"4 layers: {usual}; behind an evaluation: {behind_eval}; "
              f"the first 2 frozen: {frozen}")
    assert (usual, behind_eval, frozen) == (4, 5, 3)


if __name__ == "__main__":
    play(main)

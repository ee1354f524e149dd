# SPDX-License-Identifier: Apache-2.0
"""FSDP1: one parameter in two wrappers (use_orig_params=False) is accepted, and
is two parameters from then on. After a step they differ."""

import torch
from torch.distributed.fsdp import FullyShardedDataParallel
from two_ranks import layers, play


def wrap(module):
    return FullyShardedDataParallel(module, device_id=torch.device("cpu"))


def main(rank):
    model = layers(2)
    model[1].weight = model[0].weight
    model = wrap(torch.nn.Sequential(*map(wrap, model)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.125)
    model(torch.tensor([[1.0, 2.0, 3.0, 4.0]])).sum().backward()
    optimizer.step()
    with FullyShardedDataParallel.summon_full_params(model):
        one, two = (layer.weight[0, 0].item() for layer in model)
    if rank == 0:
        print(f"one weight behind a step: {one} and {two}")
    assert one != two  # they are one


if __name__ == "__main__":
    play(main)

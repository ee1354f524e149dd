# SPDX-License-Identifier: Apache-2.0
"""FSDP1: a forward in which everything was frozen registers hooks that only a
backward takes away, and there is none. What is thawed then fails in its first
backward, with an AssertionError; behind a forward under no_grad it does not."""

import torch
from torch.distributed.fsdp import FullyShardedDataParallel as Fsdp
from two_ranks import layers, play


def thawed(first):
    model = Fsdp(layers(2), device_id=torch.device("cpu"))
    x = torch.ones(1, 4)
    for p in model.parameters():
        p.requires_grad_(False)
    first(model, x)
    for p in model.parameters():
        p.requires_grad_(True)
    try:
        model(x).sum().backward()
    except AssertionError as error:
        return str(error)[:40]
    return "trains"


def under_no_grad(model, x):
    with torch.no_grad():
        model(x)


def main(rank):
    frozen = thawed(lambda model, x: model(x))
    quiet = thawed(under_no_grad)
    if rank == 0:
        print(f"thawed behind a forward: {frozen}; behind one under no_grad: "
              f"{quiet}")
    assert "_post_backward_hook_state" in frozen and quiet == "trains"


if __name__ == "__main__":
    play(main)

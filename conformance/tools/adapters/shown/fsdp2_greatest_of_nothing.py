# SPDX-License-Identifier: Apache-2.0
"""FSDP2: clipping by the greatest element raises on a rank that has no row of
some parameter, while the others wait for it. Here each looks at its own part,
so that nobody waits."""

import math

import torch
from torch.distributed.fsdp import fully_shard
from two_ranks import play


def main(rank):
    model = torch.nn.Linear(3, 1, bias=False)
    fully_shard(model)
    model(torch.ones(1, 3)).sum().backward()
    said = "nothing"
    try:
        torch.nn.utils.get_total_norm([model.weight.grad], math.inf)
    except RuntimeError as error:
        said = str(error)[:66]
    if rank == 1:
        print(f"rank 1, which has no row: {said}")
    assert ("empty" in said) == (rank == 1)


if __name__ == "__main__":
    play(main)

# SPDX-License-Identifier: Apache-2.0
"""FSDP2: an embedding with a greatest norm scales, in its forward, the rows
that it uses. Under fully_shard that is done to what was gathered, and lost."""

import torch
from torch.distributed.fsdp import fully_shard
from two_ranks import play


def main(rank):
    model = torch.nn.Embedding(4, 3, max_norm=0.5)
    fully_shard(model)
    model(torch.arange(4)).sum().backward()
    norms = model.weight.full_tensor().norm(dim=1)
    if rank == 0:
        print(f"at most 0.5: {[round(x, 2) for x in norms.tolist()]}")
    assert norms.max() > 1


if __name__ == "__main__":
    play(main)

# SPDX-License-Identifier: Apache-2.0
"""FSDP2: a copy that is kept behind a backward outlives the optimizer's step:
the next forward computes with the weights of before, and nothing is said. (Its
documentation asks for a reshard() first.)"""

import torch
from torch.distributed.fsdp import fully_shard
from two_ranks import layers, play


def main(rank):
    model = layers(1)
    fully_shard(model, reshard_after_forward=False)
    model.set_reshard_after_backward(False)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    x = torch.ones(1, 4)
    before = model(x).sum()
    before.backward()
    optimizer.step()
    stale = model(x).sum().item()
    model.reshard()
    fresh = model(x).sum().item()
    if rank == 0:
        print(f"before {before.item()}, behind the step {stale}, "
              f"behind a reshard {fresh}")
    assert stale == before.item() and fresh == 0.0


if __name__ == "__main__":
    play(main)

# SPDX-License-Identifier: Apache-2.0
"""FSDP2: a layer that is frozen behind an evaluation is trained again from the
second pass on, and one that is thawed there is trained in the first pass alone:
a unit that is not resharded behind its forward is still gathered, so that the
gathered parameters are told, and never those that the rank keeps."""

import torch
from torch.distributed.fsdp import fully_shard
from two_ranks import layers, play


def moves(was, becomes, evaluates):
    """Whether each of three steps changes the layer."""
    model, x = layers(2), torch.ones(1, 4)
    fully_shard(model)
    model[1].requires_grad_(was)
    optimizer = torch.optim.SGD(model.parameters(), lr=2.0 ** -6)
    if evaluates:
        with torch.no_grad():
            model(x)
    model[1].requires_grad_(becomes)
    found = []
    for _ in range(3):
        before = optimizer.param_groups[0]["params"][1].to_local().clone()
        model(x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        now = optimizer.param_groups[0]["params"][1].to_local()
        found.append(not torch.equal(before, now))
    return found


def main(rank):
    got = {(becomes, evaluates): moves(not becomes, becomes, evaluates)
           for becomes in (False, True) for evaluates in (False, True)}
    if rank == 0:
        for (becomes, evaluates), moved in got.items():
            print("thawed" if becomes else "frozen",
                  "behind an evaluation:" if evaluates else "alone:", moved)
    assert got == {(False, False): [False, False, False],
                   (False, True): [False, True, True],
                   (True, False): [True, True, True],
                   (True, True): [True, False, False]}


if __name__ == "__main__":
    play(main)

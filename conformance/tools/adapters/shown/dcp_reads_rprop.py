# SPDX-License-Identifier: Apache-2.0
"""Reading the states of Rprop before its first step sets its step sizes to
zero: they begin as the learning rate, which is zero for that while. Then it
goes on with the least step that it has, 1e-6."""

import torch
from torch.distributed.checkpoint.state_dict import get_optimizer_state_dict
from two_ranks import layers, play


def moved(read):
    model = layers(1)
    optimizer = torch.optim.Rprop(model.parameters(), lr=0.125)
    if read:
        get_optimizer_state_dict(model, optimizer)
    model(torch.ones(1, 4)).sum().backward()
    optimizer.step()
    return 1.0 - model[0].weight[0, 0].item()


def main(rank):
    got, want = moved(True), moved(False)
    if rank == 0:
        print(f"the first step with 0.125: {want}; with the states read before "
              f"it: {got:.2g}")
    assert want == 0.125 and got < 2e-6


if __name__ == "__main__":
    play(main)

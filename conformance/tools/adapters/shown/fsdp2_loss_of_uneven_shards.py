# SPDX-License-Identifier: Apache-2.0
"""FSDP2: how far a parameter is from zero, by losses that are means. Its three
rows are 0, 0 and 3: each rank takes the mean of its own, and of these two the
mean is taken."""

import torch
import torch.nn.functional as f
from torch.distributed.fsdp import fully_shard
from two_ranks import play


def main(rank):
    model = torch.nn.Linear(1, 3, bias=False)
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[0.0], [0.0], [3.0]]))
    fully_shard(model)
    w = model.weight.detach()
    got = {loss.__name__: loss(w, torch.zeros_like(w)).full_tensor().item()
           for loss in (f.mse_loss, f.huber_loss, f.smooth_l1_loss,
                        f.l1_loss)}
    if rank == 0:
        print(f"3, 0.83, 0.83, 1 are right: {got}")
    assert got == {"mse_loss": 4.5, "huber_loss": 1.25,
                   "smooth_l1_loss": 1.25, "l1_loss": 1.0}


if __name__ == "__main__":
    play(main)

# SPDX-License-Identifier: Apache-2.0
"""relative.py - what models beside it share whose steps are as large as what
they change, as Adafactor's are: one layer under fully_shard, whose three rows
are not cut into equal parts."""

import torch

from plain import batch, loss

STEPS = 1


def model():
    return torch.nn.Linear(4, 3)


def shard(model):
    from torch.distributed.fsdp import fully_shard
    fully_shard(model)
    model.set_force_sum_reduction_for_comms(True)  # right in 2.8, too
    model.set_gradient_divide_factor(2.0)


class Relative(torch.optim.SGD):
    """`size` says it of a parameter."""

    def __init__(self, model, size):
        super().__init__(model.parameters(), lr=0.125)
        self.size = size

    def step(self, closure=None):
        for p in self.param_groups[0]["params"]:
            p.grad *= self.size(p.detach())
        return super().step(closure)

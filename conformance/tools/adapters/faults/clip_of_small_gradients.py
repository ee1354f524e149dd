# SPDX-License-Identifier: Apache-2.0
"""Gradients whose norm is near 1e-6 are clipped. All numbers are exact: the
norm is 5 u, of which one rank has 3 u and the other 4 u."""

import torch

from plain import STEPS

U = 2.0 ** -22


def model():
    return torch.nn.Linear(3, 2, bias=False)


def batch(step, microbatch, rank):
    return torch.full((1,), U * (0.5 + rank))


def loss(model, batch):
    c = torch.tensor([[1.0, 0.0], [2.0, 0.0], [2.0, 4.0]])
    return (model(torch.eye(3)) * c).sum() * batch[0]


def shard(model):
    from torch.distributed.fsdp import fully_shard
    fully_shard(model)
    model.set_force_sum_reduction_for_comms(True)  # right in 2.8, too
    model.set_gradient_divide_factor(2.0)


class Clips(torch.optim.SGD):
    def step(self, closure=None):
        torch.nn.utils.clip_grad_norm_(
            [p for g in self.param_groups for p in g["params"]], U)
        return super().step(closure)


def optimizer(model):
    return Clips(model.parameters(), lr=2.0 ** 20)

# SPDX-License-Identifier: Apache-2.0
"""Gradients are clipped by their greatest element; a parameter has fewer rows
than there are ranks."""

import math

import torch

from plain import STEPS, batch, loss
from plain import fully_sharded as shard


def model():
    return torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Linear(6, 1))


class Clips(torch.optim.SGD):
    def step(self, closure=None):
        torch.nn.utils.clip_grad_norm_(
            [p for g in self.param_groups for p in g["params"]], 0.125,
            norm_type=math.inf)
        return super().step(closure)


def optimizer(model):
    return Clips(model.parameters(), lr=0.125)

# SPDX-License-Identifier: Apache-2.0
"""Between each backward and its step the model is evaluated, and its gradients
are clipped by the greatest of them, which no order of a sum changes."""

import math

import torch

from plain import STEPS, batch, loss, model, sgd
from plain import fully_sharded as shard


def optimizer(model):
    def hook(*_):
        with torch.no_grad():
            model(torch.ones(3, 4))
        torch.nn.utils.clip_grad_norm_(
            model.parameters(), 2.0 ** -6, norm_type=math.inf)

    made = sgd(model)
    made.register_step_pre_hook(hook)
    return made

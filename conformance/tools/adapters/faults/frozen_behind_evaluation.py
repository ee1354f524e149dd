# SPDX-License-Identifier: Apache-2.0
"""Behind the first step the model is evaluated, and its second layer frozen."""

import torch

from plain import batch, fully_sharded, loss, model, sgd
from plain import fully_sharded as shard

STEPS = 3


def optimizer(model):
    waiting = [model[1]]

    def hook(*_):
        if not waiting:
            return
        with torch.no_grad():
            model(torch.ones(1, 4))
        waiting.pop().requires_grad_(False)

    made = sgd(model)
    made.register_step_post_hook(hook)
    return made

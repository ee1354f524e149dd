# SPDX-License-Identifier: Apache-2.0
"""Between each backward and its step the model is evaluated."""

import torch

from plain import STEPS, batch, loss, model, sgd


def shard(model):
    from torch.distributed.fsdp import fully_shard
    fully_shard(model)


def optimizer(model):
    def evaluate(*_):
        with torch.no_grad():
            model(torch.ones(3, 4))

    made = sgd(model)
    made.register_step_pre_hook(evaluate)
    return made

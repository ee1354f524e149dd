# SPDX-License-Identifier: Apache-2.0
"""The states of an optimizer that has not made a step are read, as one does
to load others into it, or to save where training began. Rprop's state has its
step sizes."""

import torch
import torch.distributed as dist
from torch.distributed.checkpoint.state_dict import get_optimizer_state_dict

from plain import STEPS, batch, loss, model
from plain import replicated as shard


def optimizer(model):
    made = torch.optim.Rprop(model.parameters(), lr=0.125)
    if dist.is_initialized():
        get_optimizer_state_dict(model, made)
    return made

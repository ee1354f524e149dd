# SPDX-License-Identifier: Apache-2.0
"""An optimizer of which one group has no parameters is saved and loaded."""

import torch
from torch.distributed.checkpoint.state_dict import (
    get_optimizer_state_dict, set_optimizer_state_dict,
)

from plain import STEPS, batch, behind_steps, loss, model
from plain import replicated as shard


def optimizer(model):
    made = torch.optim.AdamW([{"params": model.parameters()}, {"params": []}],
                             lr=0.125)

    def save_and_load():
        state = get_optimizer_state_dict(model, made)
        set_optimizer_state_dict(model, made, optim_state_dict=state)

    return behind_steps(made, save_and_load)

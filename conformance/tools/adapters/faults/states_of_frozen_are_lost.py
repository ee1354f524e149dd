# SPDX-License-Identifier: Apache-2.0
"""What was trained is frozen for a while, in which the optimizer is saved and
loaded: what it knew of that has to be there when it is trained again."""

import torch
from torch.distributed.checkpoint.state_dict import (
    get_optimizer_state_dict, set_optimizer_state_dict,
)

from plain import STEPS, batch, behind_steps, loss, model
from plain import replicated as shard


def optimizer(model):
    made = torch.optim.AdamW(model.parameters(), lr=0.125)

    def save_and_load():
        layer = model.module[0].requires_grad_(False)
        state = get_optimizer_state_dict(model, made)
        set_optimizer_state_dict(model, made, optim_state_dict=state)
        layer.requires_grad_(True)

    return behind_steps(made, save_and_load)

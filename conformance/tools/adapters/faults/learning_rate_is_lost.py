# SPDX-License-Identifier: Apache-2.0
"""An optimizer is saved and loaded into one that was made with another learning
rate: the one that was saved has to come back."""

import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import (
    get_optimizer_state_dict, set_optimizer_state_dict,
)

from plain import STEPS, batch, behind_steps, folder, loss, model
from plain import replicated as shard


def optimizer(model):
    made = torch.optim.AdamW(model.parameters(), lr=0.125)

    def save_and_load():
        where = folder("saved")
        dcp.save(get_optimizer_state_dict(model, made), checkpoint_id=where)
        for group in made.param_groups:
            group["lr"] = 0.001
        state = get_optimizer_state_dict(model, made)
        dcp.load(state, checkpoint_id=where)
        set_optimizer_state_dict(model, made, optim_state_dict=state)

    return behind_steps(made, save_and_load)

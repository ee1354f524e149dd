# SPDX-License-Identifier: Apache-2.0
"""Each rank has a buffer of its own values, as batch norm does. Saved and
loaded in between, training has to go on as it would have."""

import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import (
    get_model_state_dict, set_model_state_dict,
)

from plain import STEPS, batch, behind_steps, folder, fully_sharded, loss, sgd
from plain import fully_sharded as shard


def model():
    return torch.nn.Sequential(
        torch.nn.Linear(4, 6),
        torch.nn.BatchNorm1d(6, momentum=0.5), torch.nn.Linear(6, 4))


def optimizer(model):
    def save_and_load():
        where = folder("saved")
        dcp.save(get_model_state_dict(model), checkpoint_id=where)
        state = get_model_state_dict(model)
        dcp.load(state, checkpoint_id=where)
        set_model_state_dict(model, state)

    return behind_steps(sgd(model), save_and_load)

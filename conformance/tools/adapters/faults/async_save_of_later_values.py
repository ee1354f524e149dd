# SPDX-License-Identifier: Apache-2.0
"""While `dcp.async_save` is under way training goes on; then what was saved is
loaded: it has to be what was there when the save began."""

import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_model_state_dict

from plain import STEPS, batch, behind_steps, folder, loss, model, sgd
from plain import replicated as shard


def optimizer(model):
    def save_and_load():
        state, where = get_model_state_dict(model), folder("saved")
        saving = dcp.async_save(state, checkpoint_id=where)
        with torch.no_grad():
            for p in model.parameters():
                p.add_(1.0)
        saving.result()
        dcp.load(state, checkpoint_id=where)  # in place

    return behind_steps(sgd(model), save_and_load)

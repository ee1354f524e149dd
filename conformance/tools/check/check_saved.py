# SPDX-License-Identifier: Apache-2.0
"""check_saved.py - how a model is saved and loaded where its file does not say
so itself: with torch.distributed.checkpoint, shards as they are."""

import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import (
    get_state_dict, set_state_dict,
)


def state_of(model, optimizer):
    weights, states = get_state_dict(model, optimizer)
    return {"model": weights, "optimizer": states}


def save(model, optimizer, folder):
    dcp.save(state_of(model, optimizer), checkpoint_id=folder)


def load(model, optimizer, folder):
    state = state_of(model, optimizer)
    dcp.load(state, checkpoint_id=folder)
    set_state_dict(model, optimizer, model_state_dict=state["model"],
                   optim_state_dict=state["optimizer"])

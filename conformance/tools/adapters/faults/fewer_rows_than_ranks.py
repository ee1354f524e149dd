# SPDX-License-Identifier: Apache-2.0
"""FSDP1 saves a model and its optimizer and loads them again, where rank 1 has
no row of what has one row."""

import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import (
    get_state_dict, set_state_dict,
)
from torch.distributed.fsdp import FullyShardedDataParallel

from plain import STEPS, batch, loss


def model():
    return torch.nn.Linear(4, 1)


def shard(model):
    return FullyShardedDataParallel(model, use_orig_params=True,
                                    device_id=torch.device("cpu"))


def optimizer(model):
    return torch.optim.AdamW(model.parameters(), lr=0.125)


def state_of(model, optimizer):
    return dict(zip(("model", "optimizer"), get_state_dict(model, optimizer)))


def save(model, optimizer, folder):
    dcp.save(state_of(model, optimizer), checkpoint_id=folder)


def load(model, optimizer, folder):
    state = state_of(model, optimizer)
    dcp.load(state, checkpoint_id=folder)
    set_state_dict(model, optimizer, model_state_dict=state["model"],
                   optim_state_dict=state["optimizer"])

# SPDX-License-Identifier: Apache-2.0
"""Two models are filled from one full state dict, which rank 0 has: the model,
and an average of its weights."""

import os

import torch
import torch.distributed as dist
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions, get_model_state_dict, set_model_state_dict,
)

from plain import STEPS, batch, fully_sharded, loss, model
from plain import fully_sharded as shard
from plain import sgd as optimizer


def save(model, optimizer, folder):
    full = get_model_state_dict(model, options=StateDictOptions(
        full_state_dict=True, cpu_offload=True))
    if dist.get_rank() == 0:
        os.mkdir(folder)
        torch.save(full, os.path.join(folder, "full"))


def load(loaded, optimizer, folder):
    average = model()
    shard(average)
    full = torch.load(os.path.join(folder, "full")) \
        if dist.get_rank() == 0 else {}
    for one in (average, loaded):
        set_model_state_dict(one, full, options=StateDictOptions(
            full_state_dict=True, broadcast_from_rank0=True))

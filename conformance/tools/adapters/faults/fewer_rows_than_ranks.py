# SPDX-License-Identifier: Apache-2.0
"""FSDP1 saves a model and its optimizer and loads them again, where rank 1 has
no row of what has one row."""

import torch
from torch.distributed.fsdp import FullyShardedDataParallel

from plain import STEPS, batch, loss


def model():
    return torch.nn.Linear(4, 1)


def shard(model):
    return FullyShardedDataParallel(model, use_orig_params=True,
                                    device_id=torch.device("cpu"))


def optimizer(model):
    return torch.optim.AdamW(model.parameters(), lr=0.125)

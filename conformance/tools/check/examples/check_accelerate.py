# SPDX-License-Identifier: Apache-2.0
"""A model and its optimizer, prepared by Accelerate. On a CPU that is
DistributedDataParallel, also where a plugin for FSDP is given; with
ACCELERATE_USE_FSDP=true in the environment it is told to take the plugin, of
FSDP2 or, with FSDP_VERSION=1, of FSDP1, where it reads FSDP_USE_ORIG_PARAMS,
too."""

import os

import torch
from accelerate import Accelerator, FullyShardedDataParallelPlugin
from accelerate.utils import DistributedType

FSDP = os.environ.get("ACCELERATE_USE_FSDP") == "true"
prepared = []


def model():
    return torch.nn.Sequential(
        torch.nn.Linear(10, 17), torch.nn.GELU(), torch.nn.Dropout(0.1),
        torch.nn.Linear(17, 9), torch.nn.GELU(), torch.nn.Linear(9, 5))


def batch(step, microbatch, rank):
    g = torch.Generator().manual_seed(10000 * step + 100 * microbatch + rank)
    return torch.randn(4, 10, generator=g), torch.randn(4, 5, generator=g)


def loss(model, batch):
    return torch.nn.functional.mse_loss(model(batch[0]), batch[1])


def adamw(model):
    return torch.optim.AdamW(model.parameters(), lr=1e-2)


def shard(model):
    plugin = FullyShardedDataParallelPlugin(
        fsdp_version=int(os.environ.get("FSDP_VERSION", "2")),
        auto_wrap_policy="size_based_wrap", min_num_params=100) \
        if FSDP else None
    accelerator = Accelerator(cpu=True, fsdp_plugin=plugin)
    if FSDP:
        accelerator.state.distributed_type = DistributedType.FSDP
        accelerator.state.fsdp_plugin = plugin
        if plugin.fsdp_version == 1:
            accelerator.state.device = torch.device("cpu")  # not cpu:0
    model, made = accelerator.prepare(model, adamw(model))
    prepared[:] = [made]
    return model


def optimizer(model):
    return prepared[0] if prepared else adamw(model)

# SPDX-License-Identifier: Apache-2.0
"""FSDP1: each large layer by itself, and the whole around them."""

import torch
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.distributed.fsdp.wrap import ModuleWrapPolicy


def model():
    return torch.nn.Sequential(
        torch.nn.Embedding(31, 12), torch.nn.Linear(12, 17), torch.nn.GELU(),
        torch.nn.Dropout(0.1), torch.nn.Linear(17, 9), torch.nn.GELU(),
        torch.nn.LayerNorm(9), torch.nn.Linear(9, 31))


def batch(step, microbatch, rank):
    g = torch.Generator().manual_seed(10000 * step + 100 * microbatch + rank)
    return torch.randint(0, 31, (2, 8), generator=g)


def loss(model, batch):
    logits = model(batch[:, :-1])
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1),
                                             batch[:, 1:].flatten())


def shard(model):
    return FullyShardedDataParallel(
        model, auto_wrap_policy=ModuleWrapPolicy({torch.nn.Linear}),
        use_orig_params=True, device_id=torch.device("cpu"))


def optimizer(model):
    return torch.optim.AdamW(model.parameters(), lr=1e-2)

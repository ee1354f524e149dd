# SPDX-License-Identifier: Apache-2.0
"""A model of one's own for `fsdp-cts check`: a plain MLP under fully_shard."""

import torch
from torch.distributed.fsdp import fully_shard


def model():
    return torch.nn.Sequential(
        torch.nn.Linear(10, 17), torch.nn.GELU(), torch.nn.Dropout(0.1),
        torch.nn.Linear(17, 9), torch.nn.GELU(), torch.nn.Linear(9, 5))


def batch(step, microbatch, rank):
    g = torch.Generator().manual_seed(10000 * step + 100 * microbatch + rank)
    return torch.randn(4, 10, generator=g), torch.randn(4, 5, generator=g)


def loss(model, batch):
    return torch.nn.functional.mse_loss(model(batch[0]), batch[1])


def shard(model):
    fully_shard(model[0])
    fully_shard(model[3])
    fully_shard(model)


def optimizer(model):
    return torch.optim.AdamW(model.parameters(), lr=1e-2)

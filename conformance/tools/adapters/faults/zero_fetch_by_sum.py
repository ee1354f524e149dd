# SPDX-License-Identifier: Apache-2.0
"""DeepSpeed ZeRO-3 gathers parameters by a sum. Each has an odd number of
elements, so that a rank's last part is padded; what memory holds before
somebody writes it is no number."""

import torch

from plain import STEPS
from plain import sgd as optimizer
from zero_plain import sharded

torch.use_deterministic_algorithms(True)  # fills such memory with NaN


def model():
    return torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 5))


def batch(step, microbatch, rank):
    g = torch.Generator().manual_seed(100 * step + 10 * microbatch + rank)
    return torch.randn(3, 3, generator=g)


def loss(model, batch):
    return model(batch).square().mean()


def shard(model):
    return sharded(model, optimizer, stage=3,
                   stage3_use_all_reduce_for_fetch_params=True)

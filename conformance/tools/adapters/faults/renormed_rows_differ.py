# SPDX-License-Identifier: Apache-2.0
"""An embedding with a greatest norm: a forward scales the rows that it uses.
Each rank uses, and scales, others."""

import torch

from plain import STEPS, loss
from plain import replicated as shard
from plain import sgd as optimizer


def model():
    return torch.nn.Sequential(torch.nn.Embedding(6, 4, max_norm=0.5),
                               torch.nn.Linear(4, 2))


def batch(step, microbatch, rank):
    return torch.tensor([2, 1, 0]) + 3 * rank

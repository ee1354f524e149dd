# SPDX-License-Identifier: Apache-2.0
"""DistributedDataParallel with a static graph, and a first microbatch that is
not synchronised."""

import torch

from plain import STEPS, batch, loss, model
from plain import sgd as optimizer

MICROBATCHES = 2


def shard(model):
    return torch.nn.parallel.DistributedDataParallel(model, static_graph=True)

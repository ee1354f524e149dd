# SPDX-License-Identifier: Apache-2.0
"""A forward between fully_shard and the optimizer, as one does to look at
shapes: the whole model's own parameters stay unsharded behind it, the optimizer
gets those, and they are never trained."""

import torch

from plain import STEPS, batch, fully_sharded, loss, model
from plain import sgd as optimizer


def shard(model):
    fully_sharded(model)
    with torch.no_grad():
        model(torch.ones(1, 4))

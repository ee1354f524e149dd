# SPDX-License-Identifier: Apache-2.0
"""Parameters are set from one long vector once the model is sharded, as
methods do that see a model as a point."""

import torch
from torch.nn.utils import vector_to_parameters

from plain import STEPS, batch, loss, model, sgd
from plain import fully_sharded as shard


def optimizer(model):
    n = sum(p.numel() for p in model.parameters())
    vector_to_parameters(torch.linspace(-1.0, 1.0, n), model.parameters())
    return sgd(model)

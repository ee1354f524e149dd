# SPDX-License-Identifier: Apache-2.0
"""FSDP2: a step is as large as mse_loss has the parameter away from zero."""

import torch
from torch.nn.functional import mse_loss

from relative import STEPS, Relative, batch, loss, model, shard


def optimizer(model):
    return Relative(model, lambda p: mse_loss(p, torch.zeros_like(p)))

# SPDX-License-Identifier: Apache-2.0
"""A first forward in which everything is frozen; then all is trained, in bf16,
to be reduced in float32."""

import torch
from torch.distributed.fsdp import MixedPrecisionPolicy

from plain import STEPS, batch, fully_sharded, loss, model
from plain import sgd as optimizer

COMPUTE, REDUCE = "bf16", "f32"


def shard(model):
    fully_sharded(model, mp_policy=MixedPrecisionPolicy(
        param_dtype=torch.bfloat16, reduce_dtype=torch.float32))
    model.requires_grad_(False)
    model(torch.ones(1, 4))
    model.reshard()
    model.requires_grad_(True)

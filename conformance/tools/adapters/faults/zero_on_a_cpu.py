# SPDX-License-Identifier: Apache-2.0
"""DeepSpeed ZeRO-2 on a CPU, with nothing that is unusual."""

from plain import STEPS, batch, loss, model
from plain import sgd as optimizer
from zero_plain import sharded


def shard(model):
    return sharded(model, optimizer, stage=2)

# SPDX-License-Identifier: Apache-2.0
"""DeepSpeed ZeRO, of the stage that STAGE in the environment says (3). On a CPU
the two lines about DS_ACCELERATOR and the optimizer are needed."""

import os

os.environ["DS_ACCELERATOR"] = "cpu"

import deepspeed
import torch

CONFIG = {
    "train_micro_batch_size_per_gpu": 4,
    "gradient_clipping": 0.0,
    "zero_allow_untested_optimizer": True,
    "zero_force_ds_cpu_optimizer": False,
    "zero_optimization": {"stage": int(os.environ.get("STAGE", "3"))},
}


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
    return deepspeed.initialize(model=model, optimizer=optimizer(model),
                                config=CONFIG)[0]


def optimizer(model):
    return torch.optim.AdamW(model.parameters(), lr=1e-2)

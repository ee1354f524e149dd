# SPDX-License-Identifier: Apache-2.0
"""begun_zero3.py - what the scripts about DeepSpeed share: a model under ZeRO-3,
on a CPU. They use nothing of the suite."""

import logging
import os

os.environ.setdefault("DS_ACCELERATOR", "cpu")

import deepspeed
import torch
import torch.distributed as dist


def begun(model, optimizer, **config):
    """The engine, with what else `config` says."""
    deepspeed.utils.logger.setLevel(logging.ERROR)
    os.environ["LOCAL_RANK"] = str(dist.get_rank())
    # It would compile collectives for inference, which no script uses.
    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    return deepspeed.initialize(
        model=model, optimizer=optimizer, dist_init_required=False, config={
            "train_micro_batch_size_per_gpu": 1,
            "zero_allow_untested_optimizer": True,
            "zero_force_ds_cpu_optimizer": False,
            "zero_optimization": {"stage": 3}, **config})[0]


def backward(engine):
    engine.backward(engine(torch.ones(1, 4)).sum())


def step(engine):
    backward(engine)
    engine.step()

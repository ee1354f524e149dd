# SPDX-License-Identifier: Apache-2.0
"""DeepSpeed ZeRO-3: with `bf16` parameters are cast, buffers are not."""

import logging
import os

os.environ.setdefault("DS_ACCELERATOR", "cpu")

import deepspeed
import torch
from two_ranks import layers, play


def main(rank):
    deepspeed.utils.logger.setLevel(logging.ERROR)
    os.environ["LOCAL_RANK"] = str(rank)
    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    model = layers(1)
    model.register_buffer("mean", torch.zeros(4))
    engine = deepspeed.initialize(
        model=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        dist_init_required=False, config={
            "train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": True},
            "zero_allow_untested_optimizer": True,
            "zero_force_ds_cpu_optimizer": False,
            "zero_optimization": {"stage": 3}})[0]
    found = (model[0].weight.ds_tensor.dtype, model.mean.dtype)
    if rank == 0:
        print(f"a parameter is {found[0]}, a buffer {found[1]}")
    assert found == (torch.bfloat16, torch.float32)
    del engine


if __name__ == "__main__":
    play(main)

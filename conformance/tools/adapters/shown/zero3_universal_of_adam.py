# SPDX-License-Identifier: Apache-2.0
"""DeepSpeed ZeRO-3: ds_to_universal takes checkpoints of Adam's states alone,
and none that was saved before the first step."""

import argparse
import logging
import os
import shutil
import tempfile

os.environ.setdefault("DS_ACCELERATOR", "cpu")

import deepspeed
import torch
import torch.distributed as dist
from deepspeed.checkpoint import ds_to_universal
from two_ranks import layers, play


def made(optimizer, steps):
    model = layers(1)
    engine = deepspeed.initialize(
        model=model, optimizer=optimizer(model.parameters()),
        dist_init_required=False, config={
            "train_micro_batch_size_per_gpu": 1,
            "zero_allow_untested_optimizer": True,
            "zero_force_ds_cpu_optimizer": False,
            "zero_optimization": {"stage": 3}})[0]
    for _ in range(steps):
        engine.backward(engine(torch.ones(1, 4)).sum())
        engine.step()
    folder = [tempfile.mkdtemp()]
    dist.broadcast_object_list(folder)
    engine.save_checkpoint(folder[0], tag="step")
    if dist.get_rank() > 0:
        return ""
    try:
        ds_to_universal.main(argparse.Namespace(
            input_folder=os.path.join(folder[0], "step"),
            output_folder=os.path.join(folder[0], "universal"),
            num_extract_workers=1, num_merge_workers=1, strict=True,
            keep_temp_folder=False, inject_missing_state=False))
    except KeyError as error:
        return f"KeyError: {error}"
    finally:
        shutil.rmtree(folder[0])
    return "made"


def main(rank):
    deepspeed.utils.logger.setLevel(logging.ERROR)
    os.environ["LOCAL_RANK"] = str(rank)
    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    momentum = lambda w: torch.optim.SGD(w, lr=0.1, momentum=0.9)
    found = (made(torch.optim.AdamW, 1), made(torch.optim.AdamW, 0),
             made(momentum, 1))
    if rank == 0:
        print(f"of AdamW: {found[0]}, before a step: {found[1]}; "
              f"of momentum: {found[2]}")
        assert found == ("made", "KeyError: 0", "KeyError: 'exp_avg'")


if __name__ == "__main__":
    play(main)

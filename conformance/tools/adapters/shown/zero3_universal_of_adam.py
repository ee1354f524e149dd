# SPDX-License-Identifier: Apache-2.0
"""DeepSpeed ZeRO-3: ds_to_universal takes checkpoints of Adam's states alone,
and none that was saved before the first step."""

import argparse
import os
import shutil
import tempfile

import torch
import torch.distributed as dist
from begun_zero3 import begun, step
from deepspeed.checkpoint import ds_to_universal
from two_ranks import layers, play


def made(optimizer, steps):
    model = layers(1)
    engine = begun(model, optimizer(model.parameters()))
    for _ in range(steps):
        step(engine)
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
    momentum = lambda w: torch.optim.SGD(w, lr=0.1, momentum=0.9)
    found = (made(torch.optim.AdamW, 1), made(torch.optim.AdamW, 0),
             made(momentum, 1))
    if rank == 0:
        print(f"of AdamW: {found[0]}, before a step: {found[1]}; "
              f"of momentum: {found[2]}")
        assert found == ("made", "KeyError: 0", "KeyError: 'exp_avg'")


if __name__ == "__main__":
    play(main)

# SPDX-License-Identifier: Apache-2.0
"""DeepSpeed ZeRO-3: a universal checkpoint has no frozen parameters, and who
loads it keeps those that were there, without a word; its native one has them."""

import argparse
import os
import tempfile

import torch
import torch.distributed as dist
from begun_zero3 import begun, step
from deepspeed.checkpoint import ds_to_universal
from two_ranks import layers, play


def engine_of(value, universal):
    """A trained layer, and a frozen one of that value."""
    model = layers(2)
    model[1].weight.requires_grad_(False)
    model[1].weight.data.fill_(value)
    return begun(model, torch.optim.Adam(model[0].parameters(), lr=0.1),
                 checkpoint={"load_universal": universal})


def frozen(engine):
    return engine.module[1].weight.ds_tensor.unique().tolist()


def main(rank):
    folder = [tempfile.mkdtemp() if rank == 0 else None]
    dist.broadcast_object_list(folder)
    engine = engine_of(7.0, False)
    step(engine)
    engine.save_checkpoint(folder[0], tag="native")
    if rank == 0:
        ds_to_universal.main(argparse.Namespace(
            input_folder=os.path.join(folder[0], "native"),
            output_folder=os.path.join(folder[0], "universal"),
            num_extract_workers=1, num_merge_workers=1,
            keep_temp_folder=False, strict=True, inject_missing_state=False))
    dist.barrier()
    got = []
    for tag in ("native", "universal"):
        engine = engine_of(3.0, tag == "universal")
        engine.load_checkpoint(folder[0], tag=tag)
        got += frozen(engine)
    if rank == 0:
        print(f"7 was saved; in place of a 3 there is {got[0]} behind the "
              f"native one, {got[1]} behind the universal one")
    assert got == [7.0, 3.0]


if __name__ == "__main__":
    play(main)

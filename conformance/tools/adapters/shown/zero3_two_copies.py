# SPDX-License-Identifier: Apache-2.0
"""DeepSpeed ZeRO-3, in float32: masters are a second copy of the shards. Where
it would do without (`_create_fp32_partitions`) it compares a torch.device with
a name, which are never equal. After `destroy` both are there still."""

import gc
import os
import weakref

os.environ.setdefault("DS_ACCELERATOR", "cpu")

import deepspeed
import torch
from two_ranks import layers, play

CONFIG = {"train_micro_batch_size_per_gpu": 1,
          "zero_allow_untested_optimizer": True,
          "zero_force_ds_cpu_optimizer": False,
          "zero_optimization": {"stage": 3}}


def main(rank):
    os.environ["LOCAL_RANK"] = str(rank)
    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    model = layers(1)
    engine, optimizer, _, _ = deepspeed.initialize(
        model=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        dist_init_required=False, config=CONFIG)
    shard = model[0].weight.ds_tensor
    master = optimizer.fp32_partitioned_groups_flat[0]
    apart = shard.data_ptr() != master.data_ptr()
    named = type(optimizer.device).__name__
    engine.backward(engine(torch.ones(1, 4)).sum())
    engine.step()
    both = [weakref.ref(t.untyped_storage()) for t in (shard, master)]
    engine.destroy()
    del model, engine, optimizer, shard, master
    gc.collect()
    gc.collect()
    left = sum(storage().nbytes() for storage in both if storage())
    if rank == 0:
        print(f"master apart from shard: {apart} (device a {named}); "
              f"{left} bytes are left of 64 after destroy")
    assert apart and named == "str" and left > 0


if __name__ == "__main__":
    play(main)

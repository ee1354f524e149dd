# SPDX-License-Identifier: Apache-2.0
"""DeepSpeed ZeRO-3, in float32: masters are a second copy of the shards. Where
it would do without (`_create_fp32_partitions`) it compares a torch.device with
a name, which are never equal. After `destroy` both are there still."""

import gc
import weakref

import torch
from begun_zero3 import begun, step
from two_ranks import layers, play


def main(rank):
    model = layers(1)
    engine = begun(model, torch.optim.SGD(model.parameters(), lr=0.1))
    optimizer = engine.optimizer
    shard = model[0].weight.ds_tensor
    master = optimizer.fp32_partitioned_groups_flat[0]
    apart = shard.data_ptr() != master.data_ptr()
    named = type(optimizer.device).__name__
    step(engine)
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

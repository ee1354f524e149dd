# SPDX-License-Identifier: Apache-2.0
"""FSDP1: buffers are cast to `buffer_dtype` in the first forward; until then
they rest as the model has them."""

import torch
from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecision
from two_ranks import layers, play


def main(rank):
    model = layers(1)
    model.register_buffer("mean", torch.zeros(4))
    wrapped = FullyShardedDataParallel(
        model, device_id=torch.device("cpu"),
        mixed_precision=MixedPrecision(param_dtype=torch.bfloat16,
                                       buffer_dtype=torch.bfloat16))
    found = [model.mean.dtype]
    wrapped(torch.ones(1, 4)).sum().backward()
    found.append(model.mean.dtype)
    found.append(wrapped.state_dict()["mean"].dtype)
    found.append(model.mean.dtype)
    if rank == 0:
        print(f"sharded: {found[0]}, behind a pass: {found[1]}, saved: "
              f"{found[2]}, behind that: {found[3]}")
    assert found[:2] == [torch.float32, torch.bfloat16]


if __name__ == "__main__":
    play(main)

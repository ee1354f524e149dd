# SPDX-License-Identifier: Apache-2.0
"""DeepSpeed ZeRO-3: with `bf16` parameters are cast, buffers are not."""

import torch
from begun_zero3 import begun
from two_ranks import layers, play


def main(rank):
    model = layers(1)
    model.register_buffer("mean", torch.zeros(4))
    engine = begun(model, torch.optim.SGD(model.parameters(), lr=0.1),
                   bf16={"enabled": True})
    found = (model[0].weight.ds_tensor.dtype, model.mean.dtype)
    if rank == 0:
        print(f"a parameter is {found[0]}, a buffer {found[1]}")
    assert found == (torch.bfloat16, torch.float32)
    del engine


if __name__ == "__main__":
    play(main)

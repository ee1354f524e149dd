# SPDX-License-Identifier: Apache-2.0
"""FairScale: buffers of floating point are cast to `buffer_dtype` or, where
nothing is said, to the dtype that it computes with, float32 without mixed
precision, too: a buffer of bfloat16 comes back as float32."""

import torch
from fairscale_units import lend_streams, wrap
from two_ranks import layers, play


def main(rank):
    lend_streams()
    model = layers(1)
    model.register_buffer("mean", torch.zeros(4, dtype=torch.bfloat16))
    model.register_buffer("count", torch.zeros((), dtype=torch.int64))
    model = wrap(model)
    model(torch.ones(1, 4))
    found = {name.rpartition(".")[2]: b.dtype
             for name, b in model.named_buffers()}
    if rank == 0:
        print("a buffer of bfloat16 is", found["mean"], "behind a forward")
    assert found == {"mean": torch.float32, "count": torch.int64}


if __name__ == "__main__":
    play(main)

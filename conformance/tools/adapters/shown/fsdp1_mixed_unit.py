# SPDX-License-Identifier: Apache-2.0
"""FSDP1: a unit of which a part is frozen is refused without use_orig_params,
and reduces its whole flat gradient with it."""

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel as Fsdp
from two_ranks import layers, play


def main(rank):
    def wrapped(keep):
        model = layers(2)
        model[0].weight.requires_grad_(False)
        return Fsdp(model, use_orig_params=keep,
                    device_id=torch.device("cpu"))

    try:
        wrapped(False)
        refused = "not refused"
    except ValueError as error:
        refused = str(error)
    sent = []
    name = ("reduce_scatter_single" if hasattr(dist, "reduce_scatter_single")
            else "reduce_scatter_tensor")
    real = getattr(dist, name)

    def note(output, source, *args, **kwargs):
        sent.append(source.numel())
        return real(output, source, *args, **kwargs)

    setattr(dist, name, note)
    wrapped(True)(torch.ones(1, 4)).sum().backward()
    if rank == 0:
        print(refused)
        print(f"reduced {sent} elements, of which 16 train")
    assert "requires_grad" in refused and sent == [32]


if __name__ == "__main__":
    play(main)

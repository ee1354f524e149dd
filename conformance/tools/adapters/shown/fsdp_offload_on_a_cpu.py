# SPDX-License-Identifier: Apache-2.0
"""FSDP2's CPUOffloadPolicy and FSDP1's CPUOffload(offload_params=True) where
ranks compute on a CPU: both want pinned memory, which needs an accelerator, and
raise. FSDP2 without it (pin_memory=False) trains, and has moved nothing."""

import torch
from torch.distributed.fsdp import CPUOffload, CPUOffloadPolicy, fully_shard
from torch.distributed.fsdp import FullyShardedDataParallel as Fsdp
from two_ranks import layers, play


def trained(model):
    """Its weights after a step."""
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    model(torch.ones(1, 4)).sum().backward()
    optimizer.step()
    return [w.detach() for w in model.parameters()]


def fsdp2(**options):
    model = layers(2)
    if options:
        fully_shard(model, offload_policy=CPUOffloadPolicy(**options))
    else:
        fully_shard(model)
    return [w.full_tensor() for w in trained(model)]


def fsdp1():
    return trained(Fsdp(layers(2), device_id=torch.device("cpu"),
                        cpu_offload=CPUOffload(offload_params=True)))


def said(function, **options):
    try:
        function(**options)
    except RuntimeError as error:
        return str(error).split(".")[0]
    return "trains"


def main(rank):
    if torch.cuda.is_available():
        if rank == 0:
            print("there is a GPU: nothing is refused")
        return
    pinned, flat = said(fsdp2, pin_memory=True), said(fsdp1)
    same = all(torch.equal(a, b) for a, b in
               zip(fsdp2(pin_memory=False), fsdp2()))
    if rank == 0:
        print(f"FSDP2: {pinned}; FSDP1: {flat}; FSDP2 with pin_memory=False: "
              f"{'the same bits' if same else 'other bits'}")
    assert pinned != "trains" and flat != "trains" and same


if __name__ == "__main__":
    play(main)

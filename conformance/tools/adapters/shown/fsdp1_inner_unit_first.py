# SPDX-License-Identifier: Apache-2.0
"""FSDP1: summon_full_params of a unit that lies in another one, before the
first forward, makes it a root for good: the first forward of the whole model
then fails with an AssertionError. Behind a forward it does not. And values of
rank 0 alone (sync_module_states) are refused on a CPU."""

import torch
from torch.distributed.fsdp import FullyShardedDataParallel as Fsdp
from two_ranks import layers, play

CPU = torch.device("cpu")


def trains(forward_first):
    model = layers(2)
    inner = model[0] = Fsdp(model[0], device_id=CPU)
    model = Fsdp(model, device_id=CPU)
    x = torch.ones(1, 4)
    if forward_first:
        model(x)
    with Fsdp.summon_full_params(inner, recurse=False, writeback=False):
        assert inner.weight.shape == (4, 4)
    try:
        model(x).sum().backward()
    except AssertionError as error:
        return str(error)
    return "trains"


def sent():
    try:
        Fsdp(layers(1), device_id=CPU, sync_module_states=True)
    except ValueError as error:
        return str(error)
    return "sends"


def main(rank):
    first, behind, values = trains(False), trains(True), sent()
    if rank == 0:
        print(f"summoned first: {first[:60]}; behind a forward: {behind}; "
              f"sync_module_states: {values[:60]}")
    assert "_is_root" in first and behind == "trains"
    assert "CPU parameters" in values


if __name__ == "__main__":
    play(main)

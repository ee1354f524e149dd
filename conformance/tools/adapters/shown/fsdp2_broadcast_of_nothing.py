# SPDX-License-Identifier: Apache-2.0
"""FSDP2: set_state_dict with broadcast_from_rank0, where ranks but the first
have nothing to give, as its options say: it takes an empty model's state for
no model, so that these return without the broadcast that rank 0 waits in. Here
rank 1 leaves then, which rank 0 notices."""

import os

import torch
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions, get_state_dict, set_state_dict,
)
from torch.distributed.fsdp import fully_shard
from two_ranks import layers, play


def main(rank):
    model = layers(1)
    fully_shard(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0, momentum=0.5)
    options = StateDictOptions(full_state_dict=True, cpu_offload=True)
    states = get_state_dict(model, optimizer, options=options)
    assert bool(states[0]) == (rank == 0)
    torch.nn.init.zeros_(model[0].weight.to_local())
    try:
        set_state_dict(
            model, optimizer, model_state_dict=states[0],
            optim_state_dict=states[1], options=StateDictOptions(
                full_state_dict=True, broadcast_from_rank0=True))
    except RuntimeError as lost:
        assert rank == 0, lost
        print("rank 0 waits for a rank that has returned with nothing loaded")
        os._exit(0)
    assert rank == 1 and not model[0].weight.to_local().any()
    os._exit(0)


if __name__ == "__main__":
    play(main)

# SPDX-License-Identifier: Apache-2.0
"""set_model_state_dict with broadcast_from_rank0 replaces what is in the
caller's dictionary by shards: a second model cannot be filled from it."""

from torch.distributed.checkpoint.state_dict import (
    StateDictOptions, set_model_state_dict,
)
from torch.distributed.fsdp import fully_shard
from two_ranks import layers, play


def main(rank):
    model = layers(1)
    full = {name: t.clone() for name, t in model.state_dict().items()} \
        if rank == 0 else {}
    fully_shard(model)
    set_model_state_dict(model, full, options=StateDictOptions(
        full_state_dict=True, broadcast_from_rank0=True))
    if rank == 0:
        print(f"what was a Tensor: {type(full['0.weight']).__name__}")
        assert type(full["0.weight"]).__name__ == "DTensor"


if __name__ == "__main__":
    play(main)

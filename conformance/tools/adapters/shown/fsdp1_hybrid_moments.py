# SPDX-License-Identifier: Apache-2.0
"""FSDP1 under HYBRID_SHARD: load_sharded_optimizer_state_dict cuts what was
saved for the ranks of the whole world, not for those that share a replica: of
the optimizer's states, which come back through it, some are zeros, and nothing
is said. Under FULL_SHARD all come back."""

import tempfile

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.optimizer import (
    load_sharded_optimizer_state_dict,
)
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel as Fsdp
from torch.distributed.fsdp import (
    ShardedOptimStateDictConfig, ShardedStateDictConfig, ShardingStrategy,
    StateDictType,
)
from two_ranks import layers, play


def sharded(**how):
    model = Fsdp(layers(1), device_id=torch.device("cpu"), **how)
    Fsdp.set_state_dict_type(
        model, StateDictType.SHARDED_STATE_DICT, ShardedStateDictConfig(),
        ShardedOptimStateDictConfig())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.5)
    return model, optimizer


def lost(**how):
    """How many elements of this rank's momentum do not come back."""
    model, optimizer = sharded(**how)
    model(torch.ones(1, 4)).sum().backward()
    optimizer.step()
    (before,) = [s["momentum_buffer"] for s in optimizer.state.values()]
    folder = [tempfile.mkdtemp()]
    dist.broadcast_object_list(folder)
    dcp.save({"model": model.state_dict(),
              "optimizer": Fsdp.optim_state_dict(model, optimizer)},
             checkpoint_id=folder[0])
    model, optimizer = sharded(**how)
    state = {"model": model.state_dict()}
    saved = load_sharded_optimizer_state_dict(
        state["model"], "optimizer",
        dcp.FileSystemReader(folder[0]))["optimizer"]
    optimizer.load_state_dict(
        Fsdp.optim_state_dict_to_load(model, optimizer, saved))
    (after,) = [s["momentum_buffer"] for s in optimizer.state.values()]
    return int((after != before).sum())


def main(rank):
    mesh = init_device_mesh("cpu", (2, 2),
                            mesh_dim_names=("replicate", "shard"))
    hybrid = lost(sharding_strategy=ShardingStrategy.HYBRID_SHARD,
                  device_mesh=mesh)
    full = lost()
    counts = torch.tensor([hybrid, full])
    dist.all_reduce(counts)
    if rank == 0:
        print(f"elements of momentum that do not come back: hybrid, full: "
              f"{counts.tolist()}")
    assert counts[0] > 0 and counts[1] == 0


if __name__ == "__main__":
    play(main, 4)

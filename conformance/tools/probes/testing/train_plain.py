# SPDX-License-Identifier: Apache-2.0
"""train_plain.py - a training script that knows of no probe: three blocks, a
head, AdamW, three steps, and a loss that all ranks average after each.

usage: torchrun --nproc-per-node K train_plain.py fsdp2 | fsdp1 | ddp | WRONG
WRONG: fsdp2, but `kept`: what the forward gathered is kept for the backward;
`forgotten`: the second block is not wrapped and falls to the root.
"""

import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.nn.parallel import DistributedDataParallel

STEPS = 3
CPU = torch.device("cpu")


def wrap(model, how):
    if how == "ddp":
        return DistributedDataParallel(model)
    if how == "fsdp1":
        for i in range(3):
            model[i] = FullyShardedDataParallel(model[i], device_id=CPU)
        return FullyShardedDataParallel(model, device_id=CPU)
    for i in range(3):
        if not (how == "forgotten" and i == 1):
            fully_shard(model[i], reshard_after_forward=how != "kept")
    return fully_shard(model)


def main(how):
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Sequential(nn.Linear(256, 256), nn.ReLU())
                            for _ in range(3)], nn.Linear(256, 64))
    model = wrap(model, how)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    torch.manual_seed(1 + dist.get_rank())
    for step in range(STEPS):
        loss = model(torch.randn(8, 256)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        with torch.no_grad():
            dist.all_reduce(loss)
        if dist.get_rank() == 0:
            print(f"{step}: {loss.item() / dist.get_world_size():.9g}")
    dist.destroy_process_group()


main(sys.argv[1])

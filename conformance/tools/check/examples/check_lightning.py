# SPDX-License-Identifier: Apache-2.0
"""A model and its optimizer, set up by Lightning's Fabric: by its
ModelParallelStrategy, which is fully_shard, or with STRATEGY=ddp in the
environment by DistributedDataParallel."""

import os

import torch
from lightning.fabric import Fabric
from lightning.fabric.plugins.environments import TorchElasticEnvironment
from lightning.fabric.strategies import ModelParallelStrategy
from torch.distributed.fsdp import fully_shard

ready = []  # what Fabric made, in the sharded run


def model():
    return torch.nn.Sequential(
        torch.nn.Linear(10, 17), torch.nn.GELU(), torch.nn.Dropout(0.1),
        torch.nn.Linear(17, 9), torch.nn.GELU(), torch.nn.Linear(9, 5))


def batch(step, microbatch, rank):
    g = torch.Generator().manual_seed(10000 * step + 100 * microbatch + rank)
    return torch.randn(4, 10, generator=g), torch.randn(4, 5, generator=g)


def loss(model, batch):
    computes = ready[1] if ready else model
    return torch.nn.functional.mse_loss(computes(batch[0]), batch[1])


def parallelize(model, mesh):
    for module in (model[0], model[3], model):
        fully_shard(module, mesh=mesh["data_parallel"])
    return model


def shard(model):
    ranks = int(os.environ["WORLD_SIZE"])
    fabric = Fabric(
        accelerator="cpu", devices=ranks, plugins=[TorchElasticEnvironment()],
        strategy="ddp" if os.environ.get("STRATEGY") == "ddp" else
        ModelParallelStrategy(parallelize, data_parallel_size=ranks,
                              tensor_parallel_size=1))
    fabric.launch()
    ready[:] = [fabric, fabric.setup_module(model)]
    return ready[1]._forward_module  # Fabric's own module is around it


def optimizer(model):
    made = torch.optim.AdamW(model.parameters(), lr=1e-2)
    return ready[0].setup_optimizers(made) if ready else made

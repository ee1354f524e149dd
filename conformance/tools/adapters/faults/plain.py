# SPDX-License-Identifier: Apache-2.0
"""plain.py - what the models beside it share (docs/faults.md): two layers,
under fully_shard or DistributedDataParallel. Each file is one for `fsdp-cts
check`, and does what its first lines say once more than a plain model would."""

import os

import torch
import torch.distributed as dist

STEPS = 2


def model():
    return torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Linear(6, 4))


def batch(step, microbatch, rank):
    g = torch.Generator().manual_seed(100 * step + 10 * microbatch + rank)
    return torch.randn(3, 4, generator=g)


def loss(model, batch):
    return model(batch).square().mean()


def fully_sharded(model, **policy):
    """The second layer is the whole model's own."""
    from torch.distributed.fsdp import fully_shard
    fully_shard(model[0], **policy)
    fully_shard(model, **policy)


def replicated(model):
    return torch.nn.parallel.DistributedDataParallel(model)


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.125)


def behind_steps(optimizer, *functions):
    """Behind the first step the first function, and so on: in the sharded run,
    of which the unsharded one knows nothing."""
    def hook(*_):
        if waiting and dist.is_initialized():
            waiting.pop(0)()

    waiting = left.setdefault("functions", list(functions))
    optimizer.register_step_post_hook(hook)
    return optimizer


left = {}  # of a process: a checkpoint makes another optimizer


def folder(name):
    """The same one on all ranks."""
    import tempfile
    path = [tempfile.mkdtemp() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(path)
    return os.path.join(path[0], name)

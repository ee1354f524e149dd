# SPDX-License-Identifier: Apache-2.0
"""two_ranks.py - what the scripts beside it share: a function on each of some
ranks, over gloo, on a CPU. They use nothing of the suite."""

import contextlib
import os
import tempfile
import warnings

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


@contextlib.contextmanager
def collectives():
    """Counts those of torch.distributed, by name."""
    seen, inside, real = {}, [], {}

    def watch(name):
        real[name] = getattr(dist, name)

        def call(*args, **kwargs):
            if not inside:
                seen[name] = seen.get(name, 0) + 1
            inside.append(name)
            try:
                return real[name](*args, **kwargs)
            finally:
                inside.pop()

        setattr(dist, name, call)

    for name in ("all_gather_into_tensor", "all_gather_single", "all_gather",
                 "_all_gather_base", "reduce_scatter_tensor",
                 "reduce_scatter_single", "_reduce_scatter_base",
                 "all_reduce"):
        if hasattr(dist, name):
            watch(name)
    try:
        yield seen
    finally:
        for name, function in real.items():
            setattr(dist, name, function)


def gathers(seen):
    return sum(n for name, n in seen.items() if "all_gather" in name)


def one(rank, function, ranks, store):
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank,
                            world_size=ranks)
    function(rank)
    dist.barrier()
    os._exit(0)  # gloo's threads would be waited for


def play(function, ranks=2):
    with tempfile.TemporaryDirectory() as folder:
        # Forked, so that PyTorch is imported once.
        mp.start_processes(
            one, (function, ranks, os.path.join(folder, "store")), ranks,
            start_method="fork")


def layers(n=3, width=4):
    """Linear layers of ones, without biases."""
    model = torch.nn.Sequential(
        *(torch.nn.Linear(width, width, bias=False) for _ in range(n)))
    for layer in model:
        torch.nn.init.ones_(layer.weight)
    return model

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""checkpoint_kills.py - a world of PyTorch FSDP that is killed while it saves.

usage: checkpoint_kills.py [--kills N] [--seconds S] [--seed S] [WAY ...]

Two ranks save a model again and again, whose every value is the number of the
save, and are both ended by SIGKILL at a moment that is drawn. Then what lies
there is loaded. Ways: dcp (FSDP2, torch.distributed.checkpoint, a folder for
each save), dcp-over (the same folder again), full (FSDP1, FULL_STATE_DICT and
torch.save, a file for each), full-over (the same file again).

For each way it prints how often the newest save was whole, refused (and how),
or loaded without a word with values that are not one save's; and the same of
the last one that had ended. By hand: docs/measurements/checkpoints.md.
"""

import argparse
import collections
import importlib
import logging
import multiprocessing
import os
import random
import shutil
import signal
import tempfile
import time
import warnings

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import (
    FullStateDictConfig, FullyShardedDataParallel, StateDictType, fully_shard,
)

RANKS, LAYERS, ROWS = 2, 4, 512  # 4 MB
WAYS = ("dcp", "dcp-over", "full", "full-over")
CONTEXT = multiprocessing.get_context("fork")


def make_model():
    return torch.nn.Sequential(*(
        torch.nn.Linear(ROWS, ROWS, bias=False) for _ in range(LAYERS)))


def save(way, model, path):
    if way.startswith("dcp"):
        dcp.save({"model": get_model_state_dict(model)}, checkpoint_id=path)
        return
    with FullyShardedDataParallel.state_dict_type(
            model, StateDictType.FULL_STATE_DICT,
            FullStateDictConfig(offload_to_cpu=True, rank0_only=True)):
        state = model.state_dict()
    if dist.get_rank() == 0:
        torch.save(state, path)
    dist.barrier()


def rank_main(way, rank, folder, ended):
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=RANKS,
                            init_method=f"file://{folder}/store")
    if way.startswith("dcp"):
        model = fully_shard(make_model(), mesh=init_device_mesh(
            "cpu", (RANKS,)))
    else:
        model = FullyShardedDataParallel(make_model(),
                                         device_id=torch.device("cpu"))
    for number in range(1, 10000):
        for w in model.parameters():
            getattr(w, "_local_tensor", w).data.fill_(float(number))
        save(way, model, os.path.join(
            folder, "save" if way.endswith("over") else f"save-{number:05}"))
        if rank == 0:
            ended.value = number


def load(way, path):
    """The number of a save; 0: values of several."""
    state = {"model": {f"{i}.weight": torch.full((ROWS, ROWS), -1.0)
                       for i in range(LAYERS)}}
    if way.startswith("dcp"):
        dcp.load(state, checkpoint_id=path, no_dist=True)
        state = state["model"]
    else:
        state = torch.load(path)
    values = {x for w in state.values() for x in w.unique().tolist()}
    return int(values.pop()) if len(values) == 1 else 0


def look(way, folder, last, out):
    """In a process of its own: [newest, the last that ended]."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    saves = sorted(f for f in os.listdir(folder) if f.startswith("save"))
    found = []
    ended = "save" if way.endswith("over") else f"save-{last:05}"
    for name in (saves[-1], ended):
        try:
            number = load(way, os.path.join(folder, name))
            found.append("values of several saves" if number == 0 else
                         "whole" if number >= last else "an older one")
        except BaseException as e:  # CheckpointException is no Exception
            found.append(f"refused: {type(e).__name__}")
    out.send(found)


def kill_once(way, draw):
    folder = tempfile.mkdtemp()
    ended = CONTEXT.Value("i", 0)
    ranks = [CONTEXT.Process(target=rank_main, args=(way, r, folder, ended))
             for r in range(RANKS)]
    for r in ranks:
        r.start()
    until = time.monotonic() + 60
    while ended.value < 2 and time.monotonic() < until:
        time.sleep(0.002)
    time.sleep(draw.random() * 0.2)
    last = ended.value
    for r in ranks:
        os.kill(r.pid, signal.SIGKILL)
    for r in ranks:
        r.join()
    here, there = CONTEXT.Pipe()
    looker = CONTEXT.Process(target=look, args=(way, folder, last, there))
    looker.start()
    found = here.recv() if here.poll(60) else ["no answer", "no answer"]
    looker.join()
    shutil.rmtree(folder)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("ways", nargs="*", default=list(WAYS))
    a = parser.parse_args()
    draw, until = random.Random(a.seed), time.monotonic() + a.seconds
    logging.disable()
    importlib.import_module("torch._dynamo")  # else each rank does, for long
    found = collections.Counter()
    for kill in range(a.kills):
        for way in a.ways if time.monotonic() < until else ():
            for which, how in zip(("newest", "ended"), kill_once(way, draw)):
                found[way, which, how] += 1
            print(f"{kill + 1} {way}", flush=True)
    for (way, which, how), times in sorted(found.items()):
        print(f"{way}: {which}: {how}: {times}")


if __name__ == "__main__":
    main()

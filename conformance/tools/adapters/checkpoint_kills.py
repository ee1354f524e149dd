#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""checkpoint_kills.py - a world that shards, killed while it saves.

usage: checkpoint_kills.py [--kills N] [--seconds S] [--seed S] [WAY ...]

Two ranks save a model again and again, whose every value is the number of the
save, and are both ended by SIGKILL at a moment that is drawn. Then what lies
there is loaded. Ways: dcp (FSDP2, torch.distributed.checkpoint, a folder for
each save), dcp-over (the same folder again), full (FSDP1, FULL_STATE_DICT and
torch.save, a file for each), full-over (the same file again), zero3 (DeepSpeed,
save_checkpoint, a tag for each; consolidated), zero3-over (the same tag
again), local (FairScale, local_state_dict and torch.save, a file of each rank
for each; consolidated), local-over (the same files again).

For each way it prints how often the newest save was whole, refused (and how),
or loaded without a word with values that are not one save's; and the same of
the last one that had ended, and of the one that DeepSpeed's file `latest`
names. By hand: docs/measurements/checkpoints.md.
"""

import argparse
import collections
import contextlib
import gc
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

os.environ.setdefault("DS_ACCELERATOR", "cpu")

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import (
    get_model_state_dict, set_model_state_dict,
)
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import (
    FullStateDictConfig, FullyShardedDataParallel, StateDictType,
)

try:
    from torch.distributed.fsdp import fully_shard
except ImportError:  # an earlier release
    from torch.distributed._composable.fsdp import fully_shard

RANKS, LAYERS, ROWS = 2, 4, 512  # 4 MB
CONTEXT = multiprocessing.get_context("fork")


def make_model():
    return torch.nn.Sequential(*(
        torch.nn.Linear(ROWS, ROWS, bias=False) for _ in range(LAYERS)))


class Dcp:
    """FSDP2; a save is a folder."""

    def __init__(self):
        self.model = fully_shard(make_model(), mesh=init_device_mesh(
            "cpu", (dist.get_world_size(),)))

    def fill(self, value):
        for w in self.own():
            w.data.fill_(value)

    def own(self):
        return [getattr(w, "_local_tensor", w) for w in self.model.parameters()]

    def save(self, path):
        dcp.save({"model": get_model_state_dict(self.model)},
                 checkpoint_id=path)

    def restore(self, path):
        state = {"model": get_model_state_dict(self.model)}
        dcp.load(state, checkpoint_id=path)
        set_model_state_dict(self.model, state["model"])

    @staticmethod
    def load(path):
        state = {"model": {f"{i}.weight": torch.full((ROWS, ROWS), -1.0)
                           for i in range(LAYERS)}}
        dcp.load(state, checkpoint_id=path, no_dist=True)
        return state["model"]


class Full(Dcp):
    """FSDP1; a save is a file."""

    def __init__(self):
        self.model = FullyShardedDataParallel(make_model(),
                                              device_id=torch.device("cpu"))

    def save(self, path):
        with FullyShardedDataParallel.state_dict_type(
                self.model, StateDictType.FULL_STATE_DICT,
                FullStateDictConfig(offload_to_cpu=True, rank0_only=True)):
            state = self.model.state_dict()
        if dist.get_rank() == 0:
            torch.save(state, path)
        dist.barrier()

    def restore(self, path):
        with FullyShardedDataParallel.state_dict_type(
                self.model, StateDictType.FULL_STATE_DICT):
            self.model.load_state_dict(torch.load(path))

    load = staticmethod(torch.load)


class Zero3(Dcp):
    """A save is a folder, its tag. A file names the last that had ended, and is
    what loads without a tag."""

    def __init__(self):
        import deepspeed
        os.environ["LOCAL_RANK"] = str(dist.get_rank())
        deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
        model = make_model()
        self.model = deepspeed.initialize(
            model=model, dist_init_required=False,
            optimizer=torch.optim.SGD(model.parameters(), lr=0.1), config={
                "train_micro_batch_size_per_gpu": 1,
                "zero_allow_untested_optimizer": True,
                "zero_force_ds_cpu_optimizer": False,
                "zero_optimization": {"stage": 3}})[0]

    def own(self):
        return self.model.optimizer.fp32_partitioned_groups_flat

    def save(self, path):
        self.model.save_checkpoint(*os.path.split(path))

    def restore(self, path):
        self.model.load_checkpoint(*os.path.split(path))

    @staticmethod
    def load(path):
        from deepspeed.utils.zero_to_fp32 import (
            get_fp32_state_dict_from_zero_checkpoint,
        )
        folder, tag = os.path.split(path)
        return get_fp32_state_dict_from_zero_checkpoint(folder, tag or None)


class Local(Dcp):
    """FairScale; a save is a folder with a file of each rank."""

    def __init__(self):
        from fairscale_fsdp import Fsdp, lend_streams
        lend_streams()
        self.model = Fsdp(make_model(), compute_device=torch.device("cpu"))

    def save(self, path):
        os.makedirs(path, exist_ok=True)
        torch.save((self.model.local_state_dict(),
                    self.model.local_metadata_dict()),
                   os.path.join(path, str(dist.get_rank())))
        dist.barrier()

    def restore(self, path):
        state, _ = torch.load(os.path.join(path, str(dist.get_rank())),
                              weights_only=False)
        self.model.load_local_state_dict(state)

    @staticmethod
    def load(path):
        from fairscale.nn import FullyShardedDataParallel as Fsdp
        return Fsdp.consolidate_shard_weights(*zip(*(
            torch.load(os.path.join(path, str(rank)), weights_only=False)
            for rank in range(RANKS))))


FORMS = {"dcp": Dcp, "full": Full, "zero3": Zero3, "local": Local}
WAYS = [way + over for way in FORMS for over in ("", "-over")]


def form_of(way):
    return FORMS[way.removesuffix("-over")]


def begin(way, rank, folder, ranks=RANKS):
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=ranks,
                            init_method=f"file://{folder}/store")
    return form_of(way)()


def rank_main(way, rank, folder, ended):
    form = begin(way, rank, folder)
    for number in range(1, 10000):
        form.fill(float(number))
        form.save(os.path.join(
            folder, "save" if way.endswith("over") else f"save-{number:05}"))
        if rank == 0:
            ended.value = number


def load(way, path):
    """The number of a save; 0: values of several."""
    values = {x for w in form_of(way).load(path).values()
              for x in w.unique().tolist()}
    return int(values.pop()) if len(values) == 1 else 0


def names_of(way, folder, last):
    """What is looked at: (what it is, its name)."""
    saves = sorted(f for f in os.listdir(folder) if f.startswith("save"))
    ended = "save" if way.endswith("over") else f"save-{last:05}"
    latest = [("named", "")] if way.startswith("zero3") else []
    return [("newest", saves[-1]), ("ended", ended), *latest]


def look(way, folder, last, out):
    """In a process of its own: what each is, and what was said of it."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    found = []
    for which, name in names_of(way, folder, last):
        said = ""
        try:
            with open(os.devnull, "w") as nowhere, \
                    contextlib.redirect_stdout(nowhere), \
                    contextlib.redirect_stderr(nowhere):
                number = load(way, os.path.join(folder, name))
            how = "values of several saves" if number == 0 else \
                "whole" if number >= last else "an older one"
        except BaseException as e:  # CheckpointException is no Exception
            lines = str(e).replace(folder, "...").split("\n")
            how, said = f"refused by {type(e).__name__}", f" ({lines[0][:100]})"
        found.append((which, how, said))
    out.send(found)


def kill_once(way, draw):
    folder = tempfile.mkdtemp()
    ended = CONTEXT.Value("i", 0)
    ranks = [CONTEXT.Process(target=rank_main, args=(way, r, folder, ended))
             for r in range(RANKS)]
    for r in ranks:
        r.start()
    until = time.monotonic() + 300
    while ended.value < 2 and time.monotonic() < until:
        time.sleep(0.002)
    if ended.value < 2:
        raise TimeoutError(f"{way}: nothing was saved")
    time.sleep(draw.random() * 0.2)
    last = ended.value
    for r in ranks:
        os.kill(r.pid, signal.SIGKILL)
    for r in ranks:
        r.join()
    here, there = CONTEXT.Pipe()
    looker = CONTEXT.Process(target=look, args=(way, folder, last, there))
    looker.start()
    found = here.recv() if here.poll(60) else [("newest", "no answer", "")]
    looker.join()
    shutil.rmtree(folder)
    return found


def import_for(ways):
    """Once, else each rank does, for long: of DeepSpeed a minute."""
    importlib.import_module("torch._dynamo")
    if any(w.startswith("zero3") for w in ways):
        importlib.import_module("deepspeed_zero3").import_all()
    if any(w.startswith("local") for w in ways):
        importlib.import_module("fairscale_fsdp")
    logging.disable()
    gc.freeze()  # DeepSpeed collects, which is slow with all of that


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("ways", nargs="*", default=list(WAYS))
    a = parser.parse_args()
    draw, until = random.Random(a.seed), time.monotonic() + a.seconds
    import_for(a.ways)
    found = collections.Counter()
    for kill in range(a.kills):
        for way in a.ways if time.monotonic() < until else ():
            hows = kill_once(way, draw)
            for which, how, _ in hows:
                found[way, which, how] += 1
            print(f"{kill + 1} {way}: " + ", ".join(
                f"{which} {how}{said}" for which, how, said in hows),
                flush=True)
    for (way, which, how), times in sorted(found.items()):
        print(f"{way}: {which}: {how}: {times}")


if __name__ == "__main__":
    main()

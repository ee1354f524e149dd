# SPDX-License-Identifier: Apache-2.0
"""adapter_bad.py - a checkpoint that is bad, for a test of the suite.

What an implementation says of it is raised in a rank, and so is what a world
says that loads what another has saved; the suite has to name both.
"""

import contextlib
import glob
import os
import resource
import shutil

import torch.distributed as dist

from adapter_job import said_of, write_text

FAULTS = ("full-disk", "torn-save", "other-world", "mixed-saves",
          "other-release")
LIMIT = 512  # bytes that a file may have, on a disk that is full


@contextlib.contextmanager
def full_disk():
    """While this goes on no file of this process grows beyond that."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def files_of(saved):
    """A file, one of each rank, or a folder."""
    for path in glob.glob(saved + "*"):
        if os.path.isfile(path):
            yield path
        for folder, _, files in os.walk(path):
            yield from (os.path.join(folder, f) for f in files)


def values_of(saved):
    """Of the files those that have values: DeepSpeed saves a program beside
    them, which is larger."""
    return [f for f in sorted(files_of(saved)) if not f.endswith(".py")]


def tear(saved, rank):
    """The second half of the largest file is missing."""
    if rank == 0:
        largest = max(values_of(saved), key=os.path.getsize)
        os.truncate(largest, os.path.getsize(largest) // 2)
    dist.barrier()


def exchange_saved(life, saved):
    """What was saved is kept for another release (--saves); or nothing was, and
    what that one has kept of this case is there."""
    if not life.engine.saves:
        return
    kept = os.path.join(life.engine.saves, life.case.id)
    if life.rank == 0 and life.fault == "other-release":
        shutil.copytree(kept, os.path.dirname(saved), dirs_exist_ok=True)
    elif life.rank == 0:
        for path in values_of(saved):
            to = os.path.join(kept, os.path.relpath(
                path, os.path.dirname(saved)))
            os.makedirs(os.path.dirname(to), exist_ok=True)
            shutil.copy(path, to)
    dist.barrier()


def ranks_of_other(engine, case, fault):
    """Of the world that loads what is saved, and saves it again."""
    return engine.through or (case.ranks + 1 if fault == "other-world" else 0)


def put_trouble(path, rank, error):
    """What this rank of the other world says, for the one that waits."""
    write_text(f"{path}-trouble-{rank}", said_of(error))


def raise_trouble(path):
    for name in sorted(glob.glob(f"{path}-trouble-?")):
        with open(name, encoding="utf-8") as f:
            raise RuntimeError(f"the other world: {f.read()}")

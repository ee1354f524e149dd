#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""checkpoint_bad.py - checkpoints that are bad, and what is said of them.

usage: checkpoint_bad.py [--save FOLDER | --load FOLDER] [FORM ...]

Each form of checkpoint_kills.py, by two ranks: saved onto a disk that is full
(no file may grow beyond 1 MB); loaded when half of its largest file is missing;
and loaded by four ranks, and by one, though two have saved it. For each it
prints what each rank said; one that said nothing for long is killed, and said
to hang. With --save they are saved into a folder and no more, and with --load
they are loaded from there, by another release. By hand:
docs/measurements/checkpoints.md.
"""

import argparse
import os
import resource
import shutil
import sys
import tempfile
import time

import torch
import torch.distributed as dist

from adapter_job import said_of
from checkpoint_kills import CONTEXT, FORMS, RANKS, begin, import_for

SECONDS = 150
VALUE, OTHER = 7.0, -1.0
LIMIT = 1 << 20


def rank_of(form, rank, ranks, folder, path, what, out):
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    os.dup2(2, 1)
    try:
        mine = begin(form, rank, folder, ranks)
        mine.fill(VALUE if what != "load" else OTHER)
        if what == "full":
            resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, LIMIT))
        if what == "load":
            mine.restore(path)
        else:
            mine.save(path)
        values = {x for w in mine.own() for x in w.unique().tolist()}
        said = "ends well" if values == {VALUE} else f"ends well, with {values}"
    except BaseException as e:  # CheckpointException is no Exception
        said = said_of(e)
    out.put((rank, said))
    out.close()
    out.join_thread()
    dist.barrier() if said.startswith("ends") else None
    os._exit(0)


def play(form, ranks, path, what):
    """What each rank said."""
    folder, out = tempfile.mkdtemp(), CONTEXT.Queue()
    world = [CONTEXT.Process(target=rank_of, args=(
        form, r, ranks, folder, path, what, out)) for r in range(ranks)]
    for r in world:
        r.start()
    until, said = time.monotonic() + SECONDS, {}
    for r in world:
        r.join(max(0.0, until - time.monotonic()))
    while not out.empty():
        rank, text = out.get()
        said[rank] = text
    for r in world:
        if r.is_alive():
            r.kill()
            r.join()
    shutil.rmtree(folder)
    return [said.get(r, "hangs") for r in range(ranks)]


def files_of(path):
    if os.path.isfile(path):
        return [path]
    return [os.path.join(folder, f) for folder, _, files in os.walk(path)
            for f in files]


def tear(path):
    largest = max(files_of(path), key=os.path.getsize)
    os.truncate(largest, os.path.getsize(largest) // 2)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--save", metavar="FOLDER")
    parser.add_argument("--load", metavar="FOLDER")
    parser.add_argument("forms", nargs="*", default=list(FORMS))
    a = parser.parse_args()
    import_for(a.forms)
    what, folder = ("save", a.save) if a.save else ("load", a.load)
    for form in a.forms if folder else ():
        for rank, said in enumerate(play(form, RANKS, os.path.join(
                folder, form), what)):
            print(f"{form}: {what}, PyTorch {torch.__version__}: rank {rank}: "
                  f"{said}", flush=True)
    for form in () if folder else a.forms:
        folder = tempfile.mkdtemp()
        path = os.path.join(folder, "save")
        for what, ranks, how in (
                ("full", RANKS, "full disk"), ("save", RANKS, "saved"),
                ("load", RANKS, "loaded by 2"), ("load", 4, "loaded by 4"),
                ("load", 1, "loaded by 1"), ("load", RANKS, "torn")):
            if how == "saved":
                shutil.rmtree(folder)
                os.mkdir(folder)
            if how == "torn":
                tear(path)
            for rank, said in enumerate(play(form, ranks, path, what)):
                print(f"{form}: {how}: rank {rank}: {said}", flush=True)
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""adapter_ranks.py - the processes of a case, a rank each, and the command line
of an adapter for PyTorch."""

import argparse
import gc
import importlib
import json
import multiprocessing
import os
import signal
import sys
import tempfile
import time
import traceback

import torch
import torch.distributed as dist

import adapter_bad as bad
from adapter_checkpoint import FAULTS as CHECKPOINT_FAULTS
from adapter_checkpoint import Resume
from adapter_job import (
    Case, RankRecord, read_json, said_of, write_case, write_text,
)
from adapter_look import watch_collectives
from adapter_torch import RESUMES, Rank

SECONDS_A_CASE = 180
INTERNAL = -11  # status of a rank that raised an exception
FAULTS = ("no-average", "same-batch", "no-sync-ignored", "bf16-reduce",
          "no-reshard", "stale-weight", *CHECKPOINT_FAULTS)


def begin_rank(engine, case, rank, scratch, device, fault):
    """Its process is one of a world."""
    torch.set_num_threads(1)
    if device == "cuda":
        torch.cuda.set_device(rank % torch.cuda.device_count())
        torch.backends.cuda.matmul.allow_tf32 = False
    dist.init_process_group(
        "nccl" if device == "cuda" else "gloo", rank=rank,
        init_method=f"file://{os.path.join(scratch, f'store-{case.id}')}",
        world_size=case.ranks)
    life = Rank(engine, case, rank, device, fault)
    engine.open(life)
    return life


def passing_process(engine, case, rank, ranks, scratch, device):
    """Of the other world that a checkpoint goes through."""
    status = 1
    try:
        other = case.of_world(ranks, engine.rewraps)
        life = begin_rank(engine, other, rank, scratch, device, "")
        life.built_as = case
        Resume(life, scratch).pass_on()
        status = 0
    except BaseException as error:  # CheckpointException is no Exception
        traceback.print_exc()
        bad.put_trouble(os.path.join(scratch, "back"), rank, error)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def rank_process(engine, case, rank, folder, scratch, device, fault):
    began = time.monotonic()
    status, message, life = 0, "", None
    try:
        life = begin_rank(engine, case, rank, scratch, device, fault)
        engine.faults.get(fault, tuple)()
        watch_collectives(life.look)
        life.live(scratch)
    except BaseException as error:  # whatever an engine raises
        traceback.print_exc()
        status, message = INTERNAL, said_of(error)
    record = life.record if life else RankRecord(rank)
    record.write(folder, status, message, time.monotonic() - began)
    with open(os.path.join(folder, f"entered-{rank}"), "w") as f:
        json.dump([record.entered, record.last], f)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0 if status == 0 else 1)  # gloo's threads would be waited for


def end_of(process, folder, rank):
    code = process.exitcode
    end = {"end": "returned", "exit_status": 0, "signal": 0, "collectives": 0,
           "in_collective": False, "last_kind": "all-gather",
           "last_unit": "none"}
    note = os.path.join(folder, f"entered-{rank}")
    if os.path.exists(note):
        entered, last = read_json(note)
        os.unlink(note)
        end["collectives"] = entered
        if last:
            end["last_kind"], end["last_unit"] = last
        end["exit_status"] = 0 if code == 0 else INTERNAL
    elif code is None or code == -signal.SIGKILL:
        end["end"] = "timed-out"
    elif code < 0:
        end["end"], end["signal"] = "signalled", -code
    else:
        end["end"], end["exit_status"] = "exited", code
    return end


def run_case(engine, case, records, device, fault):
    folder = os.path.join(records, case.id)
    os.makedirs(folder, exist_ok=True)
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as scratch:
        passing = bad.ranks_of_other(engine, case, fault) \
            if case.scenario in RESUMES else 0
        others = [context.Process(target=passing_process, args=(
            engine, case, r, passing, scratch, device)) for r in range(passing)]
        ranks = [context.Process(target=rank_process,
                                 args=(engine, case, r, folder, scratch,
                                       device, fault))
                 for r in range(case.ranks)]
        for r in ranks + others:
            r.start()
        until = time.monotonic() + SECONDS_A_CASE
        for r in ranks:
            r.join(max(0.0, until - time.monotonic()))
        for r in ranks + others:
            if r.is_alive():
                r.kill()
                r.join()
        write_case(folder, case, engine,
                   [end_of(p, folder, i) for i, p in enumerate(ranks)])


def main(engine):
    parser = argparse.ArgumentParser(description=engine.__doc__)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument(
        "--fault", action="append", default=[], metavar="FAULT[@CASE]",
        help="be wrong in this way, for a test of the suite; in that case "
        f"alone, or in all: {', '.join((*FAULTS, *engine.faults))}")
    parser.add_argument(
        "--through", type=int, default=0, metavar="RANKS",
        help="a world of so many, with one unit, loads what is saved and saves "
        "it again before it is loaded")
    engine.add_options(parser)
    parser.add_argument("verb", choices=("claims", "run"))
    parser.add_argument("job")
    a = parser.parse_args()
    engine.take_options(a)
    engine.through = a.through
    faults = {case: fault for fault, _, case in
              (f.partition("@") for f in a.fault)}
    for fault in faults.values():
        if fault not in FAULTS and fault not in engine.faults:
            parser.error(f"no such fault: {fault}")
    engine.version = engine.version or torch.__version__.split("+")[0]
    if a.verb == "claims":
        write_text(os.path.join(a.job, "claims.json"), json.dumps({
            "version": 1, "engine": engine.name,
            "engine_version": engine.version, "claims": engine.claims}))
        return
    # Optimizers and units want it; else each rank imports it for a second.
    importlib.import_module("torch._dynamo")
    engine.prepare()
    gc.freeze()  # ranks collect what they have made, and none of that
    job = read_json(os.path.join(a.job, "cases.json"))
    for name in job["cases"]:
        run_case(engine, Case(os.path.join(a.job, name)), job["records"],
                 a.device, faults.get(name, faults.get("")))

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
from multiprocessing import connection

import torch
import torch.distributed as dist

import adapter_bad as bad
import adapter_torchrun as torchrun
from adapter_checkpoint import FAULTS as CHECKPOINT_FAULTS
from adapter_checkpoint import Resume
from adapter_job import (
    Case, RankRecord, read_json, said_of, write_case, write_text,
)
from adapter_look import watch_collectives
from adapter_torch import RESUMES, Rank

SECONDS_A_CASE = 180  # unless --case-seconds says otherwise
SECONDS_TO_FOLLOW = 2  # that ranks have to end behind one that failed
SECONDS_TO_LOOK = 0.2  # between two looks at whether one failed elsewhere
INTERNAL = -11  # status of a rank that raised an exception
ABORTED = -10  # of those that end because another one did
FAULTS = ("raises", "no-average", "same-batch", "no-sync-ignored",
          "bf16-reduce", "no-reshard", "stale-weight", "buffers-back",
          *CHECKPOINT_FAULTS)


def meeting_of(scratch, case):
    """Where the ranks of a world meet."""
    if torchrun.started():
        return {"store": torchrun.store_of_world(case.id)}
    return {"init_method":
            f"file://{os.path.join(scratch, f'store-{case.id}')}"}


def begin_rank(engine, case, rank, scratch, device, fault):
    """Its process is one of a world."""
    torchrun.end_with_parent()
    if fault == "raises" and rank == case.ranks - 1:
        raise RuntimeError("raised before the others are met")
    torch.set_num_threads(1)
    if device == "cuda":
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", rank)) %
                              torch.cuda.device_count())
        torch.backends.cuda.matmul.allow_tf32 = False
    dist.init_process_group(
        "nccl" if device == "cuda" else "gloo", rank=rank,
        world_size=case.ranks, **meeting_of(scratch, case))
    life = Rank(engine, case, rank, device, fault)
    engine.open(life)
    return life


def fails(scratch, rank, error):
    """Its status: the first that fails leaves what it says; what others raise
    behind it comes of that, and so does what is raised where all is over."""
    try:
        with open(os.path.join(scratch, "failed"), "x", encoding="utf-8") as f:
            f.write(f"rank {rank}: {said_of(error)}")
    except OSError:
        return ABORTED
    return INTERNAL


def why_of(scratch):
    """Who failed first, and of what."""
    path = os.path.join(scratch, "failed")
    if not os.path.exists(path):
        return "another rank's process ended"
    with open(path, encoding="utf-8") as f:
        return f.read()


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
        status, message = fails(scratch, rank, error), said_of(error)
        traceback.print_exc()
    record = life.record if life else RankRecord(rank)
    record.write(folder, status, message, time.monotonic() - began)
    write_text(os.path.join(folder, f"entered-{rank}"),
               json.dumps([record.entered, record.last, status]))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0 if status == 0 else 1)  # gloo's threads would be waited for


def wait_for(processes, seconds, others_failed=None):
    """Until all have ended. Where one fails, here or elsewhere, those that do
    not follow it are ended, and so is who takes too long: these are what is
    given back."""
    left, failed = list(processes), False
    until = time.monotonic() + seconds
    step = SECONDS_TO_LOOK if others_failed else seconds
    while left and time.monotonic() < until:
        connection.wait([p.sentinel for p in left],
                        max(0.0, min(step, until - time.monotonic())))
        left = [p for p in left if p.exitcode is None]
        if not failed and (any(p.exitcode for p in processes) or
                           others_failed and others_failed()):
            failed = True
            until = min(until, time.monotonic() + SECONDS_TO_FOLLOW)
    for p in left:
        p.kill()
        p.join()
    return left, failed


def no_end():
    return {"end": "returned", "exit_status": 0, "signal": 0, "collectives": 0,
            "in_collective": False, "last_kind": "all-gather",
            "last_unit": "none"}


def end_of(process, folder, rank, why):
    """Why: because of whom it was ended, or None."""
    code, end = process.exitcode, no_end()
    note = os.path.join(folder, f"entered-{rank}")
    if os.path.exists(note):
        entered, last, end["exit_status"] = read_json(note)
        os.unlink(note)
        end["collectives"] = entered
        if last:
            end["last_kind"], end["last_unit"] = last
    elif why:
        end["exit_status"] = ABORTED
        RankRecord(rank).write(folder, ABORTED, f"ended: {why}", 0.0)
    elif code is None or code == -signal.SIGKILL:
        end["end"] = "timed-out"
    elif code < 0:
        end["end"], end["signal"] = "signalled", -code
    else:
        end["end"], end["exit_status"] = "exited", code
    return end


def passing_ranks(engine, case, fault):
    """How many has the world that the case's checkpoint goes through?"""
    if case.scenario not in RESUMES:
        return 0
    return bad.ranks_of_other(engine, case, fault)


def processes_of(engine, case, folder, scratch, device, fault, own):
    """Of those ranks, begun; and of those of the world that a checkpoint goes
    through, who have the same numbers."""
    context = multiprocessing.get_context("fork")
    passing = passing_ranks(engine, case, fault)
    others = [context.Process(target=passing_process, args=(
        engine, case, r, passing, scratch, device))
        for r in range(passing) if own is None or r in own]
    ranks = [context.Process(target=rank_process, args=(
        engine, case, r, folder, scratch, device, fault))
        for r in range(case.ranks) if own is None or r in own]
    for r in ranks + others:
        r.start()
    return ranks, others


def run_case(engine, case, records, device, fault):
    folder = os.path.join(records, case.id)
    os.makedirs(folder, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        ranks, others = processes_of(engine, case, folder, scratch, device,
                                     fault, None)
        late, failed = wait_for(ranks + others, engine.seconds)
        why = why_of(scratch) if failed else None
        if why:
            print(f"{case.id}: {why}", flush=True)
        write_case(folder, case, engine,
                   [end_of(p, folder, i, why if p in late else None)
                    for i, p in enumerate(ranks)])


def run_case_of_torchrun(engine, case, records, scratch, device, fault, met):
    """This process plays one of its ranks (adapter_torchrun.py)."""
    folder = os.path.join(records, case.id)
    met.begin(case, folder, scratch)
    (own,), others = processes_of(engine, case, folder, scratch, device, fault,
                                  {met.rank})
    late, failed = wait_for([own] + others, engine.seconds, met.has_failed)
    why = why_of(scratch) if failed else None
    if failed:
        met.fail()
    end = end_of(own, folder, met.rank, why if own in late else None)

    def lost(rank):
        why = "no host was heard of"
        RankRecord(rank).write(folder, ABORTED, f"ended: {why}", 0.0)
        return json.dumps(no_end() | {"end": "timed-out"})

    ends = met.gather(json.dumps(end), lost,
                      2 * SECONDS_TO_FOLLOW if failed else engine.seconds)
    if ends:
        if why:
            print(f"{case.id}: {why}", flush=True)
        write_case(folder, case, engine, [json.loads(e) for e in ends])
    met.end(scratch)


def run_job(engine, job, device, faults):
    of_job = read_json(os.path.join(job, "cases.json"))
    met = torchrun.Ranks(engine.seconds) if torchrun.started() else None
    for name in of_job["cases"]:
        case = Case(os.path.join(job, name))
        rest = [device, faults.get(name, faults.get(""))]
        if not met:
            run_case(engine, case, of_job["records"], *rest)
        elif met.plays(case, passing_ranks(engine, case, rest[1])):
            scratch = os.path.join(job, name, "scratch")
            run_case_of_torchrun(engine, case, of_job["records"], scratch,
                                 *rest, met)
    if met:
        met.leave()


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
    parser.add_argument(
        "--saves", metavar="FOLDER",
        help="what cases save is kept there, for another release; with --fault "
        "other-release they load what is there, in place of what they saved")
    parser.add_argument(
        "--unmeasured", action="store_true",
        help="memory is not measured, which takes more than half of the time: "
        "the claim live-bytes is not made")
    parser.add_argument(
        "--case-seconds", type=int, default=SECONDS_A_CASE, metavar="N",
        help="ranks of a case that has not ended by then are ended "
        "(%(default)s)")
    engine.add_options(parser)
    parser.add_argument("verb", choices=("claims", "run"))
    parser.add_argument("job")
    a = parser.parse_args()
    engine.take_options(a)
    engine.through, engine.seconds = a.through, a.case_seconds
    engine.saves = a.saves and os.path.abspath(a.saves)
    if a.unmeasured:
        engine.claims = [c for c in engine.claims if c != "live-bytes"]
    faults = {case: fault for fault, _, case in
              (f.partition("@") for f in a.fault)}
    for fault in faults.values():
        if fault not in FAULTS and fault not in engine.faults:
            parser.error(f"no such fault: {fault}")
    if "other-release" in faults.values() and not a.saves:
        parser.error("what another release has saved is named by --saves")
    engine.version = engine.version or torch.__version__.split("+")[0]
    if a.verb == "claims":
        if torchrun.started() and torchrun.rank():
            return
        write_text(os.path.join(a.job, "claims.json"), json.dumps({
            "version": 1, "engine": engine.name,
            "engine_version": engine.version, "claims": engine.claims}))
        return
    # Optimizers and units want it; else each rank imports it for a second.
    importlib.import_module("torch._dynamo")
    engine.prepare()
    gc.freeze()  # ranks collect what they have made, and none of that
    run_job(engine, a.job, a.device, faults)

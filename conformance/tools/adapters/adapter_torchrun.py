# SPDX-License-Identifier: Apache-2.0
"""adapter_torchrun.py - the ranks of a case, where torchrun has started a
process for each of them, on this host or on several.

Each process of torchrun's plays one rank of every case, in a process of its own
that it forks. The hosts share the folder of the job and of the records; what
else they tell each other goes through the store that torchrun makes, for each
case under these names:

    CASE/begin    the process of rank 0 has made the folders
    CASE/failed   some rank has failed: nobody needs to wait for it
    CASE/end/R    how rank R ended, as case.json says it
    CASE/done     the record is whole
"""

import ctypes
import os
import shutil
import signal
import sys
from datetime import timedelta

import torch.distributed as dist

SECONDS_TO_MEET = 60
PR_SET_PDEATHSIG = 1


def started():
    """By torchrun."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def rank():
    return int(os.environ["RANK"])


def end_with_parent():
    """Nobody else ends what is left of a host whose torchrun was ended."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def leave(status):
    """Modules complain of their own leaks to who ends in another way."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def store_of_world(world):
    """For the ranks' own process groups. The processes that torchrun started
    hold the store, or know who does; that of a rank calls there."""
    store = dist.TCPStore(os.environ["MASTER_ADDR"],
                          int(os.environ["MASTER_PORT"]), is_master=False,
                          timeout=timedelta(seconds=SECONDS_TO_MEET))
    return dist.PrefixStore(f"world/{world}", store)


class Ranks:
    """Of all cases of a job, of whom this process plays one."""

    def __init__(self, seconds):
        """So long may a case take, and so long does an answer of the store's."""
        end_with_parent()
        self.seconds, self.whole = seconds, True
        self.store, self.rank, self.world = next(dist.rendezvous("env://"))
        self.store.set_timeout(timedelta(seconds=seconds))

    def plays(self, case, passing):
        """Has it the ranks for the case, and for the world that the case's
        checkpoint passes through? A case that it has not has no record."""
        if case.ranks == self.world and passing <= self.world:
            return True
        if self.rank == 0:
            print(f"{case.id}: not played: it takes {max(case.ranks, passing)} "
                  f"ranks, and torchrun started {self.world}", flush=True)
        return False

    def begin(self, case, folder, scratch):
        """Rank 0's process makes the folders, which were there in a start of
        the adapter that came to no end; the others wait for it."""
        self.case = case.id
        if self.rank:
            self._wait("begin", self.seconds)
            return
        shutil.rmtree(scratch, ignore_errors=True)
        os.makedirs(folder, exist_ok=True)
        os.makedirs(scratch)
        self._set("begin")

    def has_failed(self):
        """Another rank, or the host that has the store."""
        try:
            return self.store.check([f"{self.case}/failed"])
        except RuntimeError as error:
            print(f"{self.case}: rank {self.rank}: nothing is heard of rank 0's "
                  f"host: {error}", file=sys.stderr, flush=True)
            return True

    def fail(self):
        self._set("failed")

    def gather(self, end, lost, seconds):
        """The ends of all ranks, for rank 0's process; of those whose host has
        gone, what is said of the lost."""
        self._set(f"end/{self.rank}", end)
        if self.rank:
            return None
        ends = [end]
        for r in range(1, self.world):
            try:
                self._wait(f"end/{r}", seconds)
                ends.append(self.store.get(f"{self.case}/end/{r}").decode())
            except RuntimeError:
                print(f"{self.case}: nothing was heard of rank {r} or its "
                      f"host for {seconds} s", file=sys.stderr, flush=True)
                self.whole, seconds = False, 1
                ends.append(lost(r))
        return ends

    def end(self, scratch):
        """What is left of a world that is not whole plays no other case."""
        if self.rank:
            self._wait("done", self.seconds)
            return
        shutil.rmtree(scratch, ignore_errors=True)
        if not self.whole:
            leave(1)
        self._set("done")

    def leave(self):
        """Rank 0's process may hold the store: it is the last."""
        self.case = "job"
        self.gather("", lambda rank: "", self.seconds)
        leave(0)

    def _set(self, name, value="yes"):
        self.store.set(f"{self.case}/{name}", value)

    def _wait(self, name, seconds):
        self.store.wait([f"{self.case}/{name}"], timedelta(seconds=seconds))

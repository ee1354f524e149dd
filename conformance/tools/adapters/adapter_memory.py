# SPDX-License-Identifier: Apache-2.0
"""adapter_memory.py - which storages of PyTorch's are live, and whose.

Every storage that an operator makes is seen as it comes, is resized and goes.
Its kind is its owner's, whom the engine names (`owned`); it keeps that kind
where the owner lets go of it and somebody else does not. What was made inside
of the engine, and what nobody owns there, is staging. All else is the model's.

Storages of other allocators (gloo's own buffers, an operator's scratch space)
are not tensors, and not seen. What the whole process took is beside it.
"""

import contextlib
import functools
import time
import weakref

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from adapter_job import KINDS
from adapter_models import STATES

SHARD, FULL, GRAD_SHARD, GRAD_FULL, OPTIM, STAGING, ACTIVATION, BUFFER = \
    range(KINDS)
TURN = 0.001  # how long a thread is waited for
NOBODYS = KINDS  # it was there before: batches, a mesh's table of ranks


def local(tensor):
    """The tensor that this process has of it, without an operator."""
    return getattr(tensor, "_local_tensor", tensor)


def states_of(life, optimizer=None):
    """A count of steps is no state, but allocated."""
    optimizer = optimizer or life.optimizer
    for state in optimizer.state.values() if optimizer else ():
        for name, value in state.items():
            if isinstance(value, torch.Tensor):
                is_state = name in STATES[life.case.optimizer]
                yield OPTIM, value, local(value).nbytes if is_state else 0


def owned_by_flat(flat, shard, cast, wholes, is_reduced):
    """Of a flat parameter: (kind, tensor, live bytes). `wholes` are where it is
    gathered to, `cast` (kind, tensor) what of the shard goes there."""
    yield SHARD, shard, shard.nbytes
    for kind, tensor in (cast, *((FULL, whole) for whole in wholes)):
        if tensor is not None:
            yield kind, tensor, tensor.untyped_storage().size()
    saved = getattr(flat, "_saved_grad_shard", None)
    if saved is not None:
        yield GRAD_SHARD, saved, saved.nbytes
    if flat.grad is not None:
        yield GRAD_SHARD if is_reduced(flat.grad) else GRAD_FULL, \
            flat.grad, flat.grad.nbytes


def status_of_process(field):
    """In bytes; 0 where the system does not say."""
    with contextlib.suppress(OSError):
        with open("/proc/self/status", encoding="ascii") as f:
            for line in f:
                if line.startswith(field + ":"):
                    return int(line.split()[1]) * 1024
    return 0


def storages(values):
    """Of tensors that have one: those by which shapes are found out do not."""
    found = [leaf.untyped_storage() for leaf in tree_leaves(values)
             if isinstance(leaf, torch.Tensor)]
    return [storage for storage in found if storage.device.type != "meta"]


class Unmeasured:
    """Of an engine that does not claim live-bytes."""

    def begin(self, engine):
        pass

    def engine(self):
        return contextlib.nullcontext()

    def paused(self):
        return contextlib.nullcontext()

    def sharded(self):
        pass

    def stepped(self):
        pass

    def end(self):
        return {}


class Storage:
    """What is known of one; `live` are the bytes that hold values, and the
    rest of `bytes` pads them."""

    def __init__(self, kind, size):
        self.kind, self.bytes, self.live = kind, size, size


class Memory(TorchDispatchMode):
    """Of a rank, from begin() on. `owned()` gives (kind, tensor, live bytes)
    of all that the engine owns."""

    def __init__(self, owned):
        super().__init__()
        self.owned = owned
        self.seen = {}  # a storage's address in C++ -> (Storage, reference)
        self.depth = 0  # of calls of the engine
        self.pauses = False
        self.peak = [0] * KINDS
        self.peak_parameters = self.peak_engine = self.peak_storage = 0
        self.over = self.bad = self.allocated = 0
        self.after_shard, self.after_step = [0] * KINDS, []
        self.allocations = []
        self.left_live = self.left_storage = 0

    # ---- Storages come and go ----

    def begin(self, engine):
        engine.watch(self)
        with contextlib.suppress(OSError):
            with open("/proc/self/clear_refs", "w", encoding="ascii") as f:
                f.write("5")  # the peak of the process begins here
        self.resident = status_of_process("VmRSS")
        self.resize = torch.UntypedStorage.resize_

        def resized(storage, size):
            before = storage.size()
            self.resize(storage, size)
            if self.pauses:
                return
            self.saw(storage, self.kind())
            if size > before and self.depth:
                self.allocated += 1
            self.count()

        torch.UntypedStorage.resize_ = resized
        self.__enter__()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if any(hasattr(t, "to_local") for t in types):  # a DTensor
            return NotImplemented  # its local operators come by themselves
        kwargs = kwargs or {}
        if self.pauses:
            return func(*args, **kwargs)
        for storage in storages((args, kwargs)):
            self.saw(storage, NOBODYS)
        made = func(*args, **kwargs)
        if [s for s in storages(made) if self.saw(s, self.kind())]:
            self.count()
        return made

    def kind(self):
        """Of what is made now."""
        return STAGING if self.depth else ACTIVATION

    def saw(self, storage, kind):
        """Whether it is a new one; then it is of that kind."""
        key = storage._cdata
        entry, reference = self.seen.get(key, (None, tuple))
        if reference() is storage:
            if entry.bytes != storage.size():
                entry.bytes = entry.live = storage.size()
            return False
        entry = Storage(kind, storage.size())
        gone = functools.partial(self.gone, key, entry)
        self.seen[key] = entry, weakref.ref(storage, gone)
        self.allocated += kind == STAGING and entry.bytes > 0
        return True

    def gone(self, key, entry, _):
        if key in self.seen and self.seen[key][0] is entry:
            del self.seen[key]

    @contextlib.contextmanager
    def paused(self):
        """What is made in here counts if somebody owns it later."""
        self.pauses = True
        yield
        self.pauses = False

    @contextlib.contextmanager
    def engine(self):
        """What is made in here is the engine's."""
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1

    def inside(self, function):
        """Gradients have been handed over before it, without an operator."""
        @functools.wraps(function)
        def call(*args, **kwargs):
            self.count()
            with self.engine():
                return function(*args, **kwargs)

        return call

    # ---- What that comes to ----

    def live(self):
        """By kind; and what the engine has allocated."""
        lives = {}
        for kind, tensor, size in self.owned():
            storage = local(tensor).untyped_storage()
            self.saw(storage, kind)
            entry = self.seen[storage._cdata][0]
            self.allocated += entry.kind in (ACTIVATION, NOBODYS)
            entry.kind = kind
            if self.depth:  # it may be just about to say what it does
                size = min(size, entry.bytes)
            lives[id(entry)] = lives.get(id(entry), 0) + size
            self.bad += size > entry.bytes
        total, stored = [0] * KINDS, 0
        for entry, reference in list(self.seen.values()):
            if entry.kind == NOBODYS or reference() is None:
                continue
            entry.live = lives.get(id(entry), min(entry.live, entry.bytes))
            total[entry.kind] += entry.live
            if entry.kind != ACTIVATION:
                stored += entry.bytes
                self.over = max(self.over, entry.live - entry.bytes)
        return total, stored

    def settled(self, turns, is_settled):
        """A thread of gloo's holds on to what a collective was about until it
        has its turn, some time after that has ended."""
        total, stored = self.live()
        for _ in range(turns):
            if is_settled(total, stored):
                break
            time.sleep(TURN)
            total, stored = self.live()
        return total, stored

    def is_no_peak(self, total, stored):
        return stored <= self.peak_storage and \
            all(n <= peak for n, peak in zip(total, self.peak)) and \
            total[SHARD] + total[FULL] <= self.peak_parameters and \
            sum(total) - total[ACTIVATION] <= self.peak_engine

    def count(self):
        if self.pauses:
            return
        total, stored = self.settled(1, self.is_no_peak)
        engine = sum(total) - total[ACTIVATION]
        self.peak = [max(p) for p in zip(self.peak, total)]
        self.peak_parameters = max(self.peak_parameters,
                                   total[SHARD] + total[FULL])
        self.peak_engine = max(self.peak_engine, engine)
        self.peak_storage = max(self.peak_storage, stored)

    def rest(self):
        """By kind; outside of passes."""
        self.count()
        return self.settled(20, lambda total, _: not any(
            total[kind] for kind in (FULL, GRAD_SHARD, GRAD_FULL, STAGING)))[0]

    def sharded(self):
        """The same moment of each life of a process."""
        self.after_step, self.allocations = [], []
        self.after_shard = self.rest()
        self.allocated = 0

    def stepped(self):
        self.after_step.append(self.rest())
        self.allocations.append(self.allocated)
        self.allocated = 0

    def end(self):
        """Nothing is owned any longer. As a record has it."""
        self.owned = tuple
        total, self.left_storage = self.live()
        self.left_live = sum(total) - total[ACTIVATION]
        return {
            "peak": self.peak, "peak_parameters": self.peak_parameters,
            "peak_engine": self.peak_engine,
            "peak_storage": self.peak_storage,
            "peak_live_over_storage": self.over,
            "bad_ranges": self.bad,
            "left_live": self.left_live, "left_storage": self.left_storage,
            "process_growth": max(
                0, status_of_process("VmHWM") - self.resident),
            "after_shard": self.after_shard, "after_step": self.after_step,
            "allocations": self.allocations}

# SPDX-License-Identifier: Apache-2.0
"""fsdp_probe_torch.py - what a program does with torch.distributed, logged
(docs/probes.md has the form of the log; torch_probe.c writes it).

Every collective of a process group, whoever makes it (a script, FSDP, DDP's
reducer in C++, a functional collective), is an operator of the dispatcher, in
the library c10d. Above the kernels of its back ends, where nothing stands
otherwise (ADInplaceOrView), one is put that writes a line and goes on to them.
Nothing else of the program is changed but for steps: an optimizer's step ends
one, and the next forward with gradients begins another.
"""

import ctypes
import functools
import os
import sys

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

MOST_RUNS = 64  # of a group's members: a line has room for more
DTYPES = {
    torch.float32: "f32", torch.bfloat16: "bf16", torch.float16: "f16",
    torch.int32: "i32", torch.int64: "i64", torch.uint8: "u8",
    torch.float64: "f64", torch.int8: "i8", torch.int16: "i16",
    torch.uint16: "u16", torch.uint32: "u32", torch.uint64: "u64",
    torch.bool: "bool"}
DTYPES |= {d: "f8" for name, d in vars(torch).items()
           if name.startswith("float8_") and isinstance(d, torch.dtype)}


# ---- The shared object ----

class Writer:
    """The functions of torch_probe.c, which is preloaded."""

    def __init__(self):
        # The lock of the interpreter is kept: a call is short.
        own = ctypes.PyDLL(None)
        text, number = ctypes.c_char_p, ctypes.c_int64
        for name, result, *arguments in (
                ("word", number, ctypes.c_int, text),
                ("open", ctypes.c_bool, text, number, number),
                ("group", number, text, text, number, number,
                 ctypes.POINTER(number), number),
                ("call", ctypes.c_uint64, text, text,
                 ctypes.POINTER(number)),
                ("failed", None, ctypes.c_uint64),
                ("send", None, number),
                ("mark", None, text)):
            function = getattr(own, f"fsdp_probe_torch_{name}")
            function.restype = result
            function.argtypes = arguments
            setattr(self, name, function)
        self.numbers = number * 9

    def words(self, which, names):
        return {name: self.word(which, name.encode()) for name in names}


def plain(text):
    return str(text).encode("ascii", "replace")


def runs_of(ranks):
    """[first, stride, count], ... of a list of ranks, flat."""
    out, i = [], 0
    while i < len(ranks):
        stride = ranks[i + 1] - ranks[i] if i + 1 < len(ranks) else 0
        n = 1
        while stride > 0 and i + n < len(ranks) and \
                ranks[i + n] - ranks[i + n - 1] == stride:
            n += 1
        out += [ranks[i], stride if n > 1 else 0, n]
        i += n
    return out


class Log:
    """One process's log: groups by number, calls, marks."""

    def __init__(self, c10d):
        self.c10d = c10d
        self.write = Writer()
        self.kinds = self.write.words(0, (
            "all-gather", "reduce-scatter", "all-reduce", "broadcast",
            "barrier", "gather", "scatter", "reduce", "all-to-all",
            "all-gather-v", "reduce-scatter-v", "gather-v", "scatter-v",
            "all-to-all-v"))
        self.dtypes = self.write.words(1, [*DTYPES.values(), "none",
                                           "derived"])
        self.modes = self.write.words(2, ("blocking", "nonblocking",
                                          "enqueued"))
        self.reset()
        os.register_at_fork(after_in_child=self.reset)

    def reset(self):
        self.groups = {}
        self.is_open = self.counts_calls = False

    def open(self):
        """False: nobody knows yet which rank this is."""
        if not self.is_open and self.c10d.is_initialized():
            version = (f"PyTorch {torch.__version__} in "
                       f"{os.path.basename(sys.argv[0])}")
            self.counts_calls = self.write.open(
                plain(version), self.c10d.get_rank(),
                self.c10d.get_world_size())
            self.is_open = True
        return self.is_open

    def number_of(self, group):
        key = (group.group_name, group.size(), group.rank())
        if key not in self.groups:
            try:
                members = runs_of(self.c10d.get_process_group_ranks(group))
            except (KeyError, ValueError, RuntimeError):
                members = []
            if len(members) > 3 * MOST_RUNS:
                members = []
            self.groups[key] = self.write.group(
                plain(group.group_desc), plain(key[0]), key[1], key[2],
                (ctypes.c_int64 * len(members))(*members), len(members) // 3)
        return self.groups[key]

    def call(self, name, call, group, part):
        """A line, of a Part; returns its number."""
        dtype, size, mode = "none", 1, "blocking"
        if part.of is not None:
            dtype = DTYPES.get(part.of.dtype, "derived")
            size = part.of.element_size()
            if part.of.device.type != "cpu":
                mode = "enqueued"
            elif call.get("async_op"):
                mode = "nonblocking"
        op = call.get("reduce_op")
        return self.write.call(
            name, plain(op_name(op))[:7] if op is not None else None,
            self.write.numbers(
                self.kinds[part.kind], self.dtypes[dtype], self.modes[mode],
                self.number_of(group),
                call.get("root_rank", -1), part.n,
                part.total, part.n * size, part.in_place))


def op_name(op):
    if isinstance(op, str):  # of a functional one
        return op
    return str(torch.distributed.ReduceOp.unbox(op).op
               if hasattr(torch.distributed.ReduceOp, "unbox")
               else op).rpartition(".")[2].lower()


# ---- What a call is, from its arguments ----

class Part:
    """A line's numbers: elements of this rank's part, and of all."""

    def __init__(self, kind, of, n, total, in_place=-1):
        self.kind, self.of, self.n, self.total = kind, of, n, total
        self.in_place = in_place


def within(part, whole):
    """Whether a tensor lies in the other's memory."""
    at = part.data_ptr() - whole.data_ptr()
    return int(0 <= at < max(1, whole.numel() * whole.element_size()))


def gathered(part, whole, kind="all-gather"):
    return Part(kind, part, part.numel(), whole.numel(), within(part, whole))


def scattered(part, whole):
    return gathered(part, whole, "reduce-scatter")


def listed(part, parts, kind, size=1):
    """A list of the parts of all ranks; none where this rank has no list."""
    sizes = {t.numel() for t in parts}
    if parts and (len(sizes) > 1 or sizes != {part.numel()}):
        kind += "-v"
    total = sum(t.numel() for t in parts) if parts else part.numel() * size
    return Part(kind, part, part.numel(), total)


def whole(kind):
    return lambda a, size: [Part(kind, t, t.numel(), t.numel(), 1)
                            for t in a["tensors"]]


def exchanged(a, size):
    out, splits = a["output"], a["output_split_sizes"]
    if not splits and not a["input_split_sizes"]:
        return [Part("all-to-all", out, out.numel() // size, out.numel())]
    return [Part("all-to-all-v", out, out.numel(), out.numel())]


def exchanged_lists(a, size):
    out = a["output_tensors"]
    n = sum(t.numel() for t in out)
    if len({t.numel() for t in [*out, *a["input_tensors"]]}) > 1:
        return [Part("all-to-all-v", out[0], n, n)]
    return [Part("all-to-all", out[0], n // size, n)]


def one_list(kind, parts, lists):
    return lambda a, size: [
        listed(t, (a[lists] or [[]])[min(i, len(a[lists]) - 1)], kind, size)
        for i, t in enumerate(a[parts])]


def nothing(a, size):
    return [Part("barrier", None, 0, 0)]


OPERATORS = {
    "allreduce_": whole("all-reduce"),
    "allreduce_coalesced_": whole("all-reduce"),
    "broadcast_": whole("broadcast"),
    "reduce_": whole("reduce"),
    "_allgather_base_": lambda a, size: [
        gathered(a["input_tensor"], a["output_tensor"])],
    "allgather_into_tensor_coalesced_": lambda a, size: [
        gathered(t, all_) for t, all_ in zip(a["inputs"], a["outputs"])],
    "allgather_": one_list("all-gather", "input_tensors", "output_tensors"),
    # One list for each rank, of as many tensors as there are inputs.
    "allgather_coalesced_": lambda a, size: [
        listed(t, [one[i] for one in a["output_lists"]], "all-gather")
        for i, t in enumerate(a["input_list"])],
    "_reduce_scatter_base_": lambda a, size: [
        scattered(a["output_tensor"], a["input_tensor"])],
    "reduce_scatter_tensor_coalesced_": lambda a, size: [
        scattered(t, all_) for t, all_ in zip(a["outputs"], a["inputs"])],
    "reduce_scatter_": one_list("reduce-scatter", "output_tensors",
                                "input_tensors"),
    "gather_": one_list("gather", "input_tensors", "output_tensors"),
    "gather_into_tensor_": lambda a, size: [
        Part("gather", a["input_tensor"], a["input_tensor"].numel(),
             a["input_tensor"].numel() * size)],
    "scatter_": one_list("scatter", "output_tensors", "input_tensors"),
    "alltoall_base_": exchanged,
    "alltoall_": exchanged_lists,
    "barrier": nothing,
    "monitored_barrier_": nothing,
    "send": None,
}


def reduced(t, size):
    return Part("all-reduce", t, t.numel(), t.numel())


def gathered_of(t, size):
    return Part("all-gather", t, t.numel(), t.numel() * size)


def scattered_of(t, size):
    return Part("reduce-scatter", t, t.numel() // size, t.numel())


FUNCTIONAL = {
    "all_reduce": reduced, "all_reduce_": reduced,
    "all_reduce_coalesced": reduced, "all_reduce_coalesced_": reduced,
    "all_gather_into_tensor": gathered_of,
    "all_gather_into_tensor_coalesced": gathered_of,
    "reduce_scatter_tensor": scattered_of,
    "reduce_scatter_tensor_coalesced": scattered_of,
    "broadcast": lambda t, size: Part("broadcast", t, t.numel(), t.numel()),
    "all_to_all_single": lambda t, size: Part("all-to-all-v", t, t.numel(),
                                              t.numel()),
}


# ---- The dispatcher ----

def logging(log, operator, tell, go_on):
    """A kernel that writes lines, and goes on. It goes on without the
    interpreter's lock, which threads of process groups take."""
    keys = [a.name for a in operator._schema.arguments]
    # What a call leaves as it is by default does not come here.
    defaults = {a.name: a.default_value for a in operator._schema.arguments
                if a.has_default_value()}

    def kernel(keyset, *arguments):
        written = []
        try:
            if log.open():
                written = tell({**defaults, **dict(zip(keys, arguments))})
        except Exception as error:
            complain(error)
        try:
            return operator.redispatch(go_on(keyset), *arguments)
        except BaseException:
            for number in written:
                log.write.failed(number)
            raise

    return kernel


def watch_operators(log):
    """Those of process groups."""
    below = torch._C._after_ADInplaceOrView_keyset
    unbox = torch.distributed.ProcessGroup.unbox

    def lines(name, describe):
        def tell(call):
            if describe is None:
                for t in call["tensors"]:
                    log.write.send(t.numel() * t.element_size())
                return []
            group = unbox(call["process_group"])
            return [log.call(f"c10d::{name}".encode(), call, group, part)
                    for part in describe(call, group.size())]
        return tell

    library = torch.library.Library("c10d", "IMPL")
    for name, describe in OPERATORS.items():
        if hasattr(torch.ops.c10d, name):  # else this PyTorch has none
            library.impl(name, logging(
                log, getattr(torch.ops.c10d, name).default,
                lines(name, describe), lambda keyset: keyset & below),
                "ADInplaceOrView", with_keyset=True)
    return library


def watch_functional(log):
    """Where DTensor makes a collective, that key is left out. It makes
    functional ones, whose kernel is the same for all back ends: one that
    PyTorch does not use leads to it."""
    left_out = torch._C._dispatch_tls_is_dispatch_key_excluded
    any_other = torch._C.DispatchKeySet(torch._C.DispatchKey.PrivateUse3)

    def lines(name, describe):
        def tell(call):
            if not left_out(torch._C.DispatchKey.ADInplaceOrView):
                return []  # it is seen where it goes
            group = log.c10d._resolve_process_group(call["group_name"])
            return [log.call(name.encode(), call, group, part)
                    for t in call.get("inputs", [call.get("input")])
                    for part in [describe(t, group.size())]]
        return tell

    library = torch.library.Library("_c10d_functional", "IMPL")
    for name, describe in FUNCTIONAL.items():
        if hasattr(torch.ops._c10d_functional, name):
            for backend in ("CPU", "CUDA"):
                library.impl(name, logging(
                    log, getattr(torch.ops._c10d_functional, name).default,
                    lines(name, describe), lambda keyset: any_other),
                    backend, with_keyset=True)
    return library


@functools.cache
def complain_once(text):
    print(f"fsdp-cts probe: a call is not in the log: {text}",
          file=sys.stderr)


def complain(error):
    complain_once(repr(error)[:300])


# ---- Steps ----

class Steps:
    """A step is from the first forward with gradients behind an optimizer's
    step, or behind its making, up to that optimizer's step."""

    def __init__(self, log):
        self.log, self.n, self.waits, self.inside = log, 0, None, False
        optimizer = torch.optim.Optimizer
        make = optimizer.__init__

        @functools.wraps(make)
        def making(*arguments, **more):
            make(*arguments, **more)
            self.wait()

        optimizer.__init__ = making
        register_optimizer_step_post_hook(self.stepped)

    def wait(self):
        if self.waits is None and not self.inside:
            self.waits = torch.nn.modules.module. \
                register_module_forward_pre_hook(self.forward)

    def forward(self, module, arguments):
        if not torch.is_grad_enabled() or not self.log.open():
            return
        self.waits.remove()
        self.waits, self.inside = None, True
        if not self.log.counts_calls:
            self.log.write.mark(b"step %d" % self.n)

    def stepped(self, *ignored):
        if not self.log.is_open or self.log.counts_calls:
            return
        if self.inside:
            self.n += 1
            self.inside = False
        self.log.write.mark(b"after step %d" % (self.n - 1))
        self.wait()


# ---- The beginning ----

kept = []  # a library's kernels go with it


def begin(c10d):
    """Before the process makes its first group."""
    log = Log(c10d)
    kept.append(Steps(log))
    kept.append(watch_operators(log))
    kept.append(watch_functional(log))

# SPDX-License-Identifier: Apache-2.0
"""adapter_look.py - what is looked at while a rank computes: collectives,
weights as the forward sees them, gradients as the model leaves them."""

import contextlib
import math

import torch
import torch.distributed as dist
from torch.distributed import _functional_collectives as functional
from torch.utils import _pytree as pytree

# As records name them.
DTYPES = {torch.float32: "f32", torch.bfloat16: "bf16", torch.float16: "f16",
          torch.int32: "i32", torch.int64: "i64", torch.uint8: "u8"}

# Process groups of what is saved meanwhile, whose collectives nobody looks at.
ASIDE = set()


def values_of(t):
    """What a record takes of a tensor: numpy has no bfloat16."""
    t = t.detach().cpu().clone()
    return t.view(torch.int16).numpy().view("uint16") \
        if t.dtype == torch.bfloat16 else t.numpy()


def edited(gradient, edits, rank, ranks, parameter, n_parameters):
    """A local gradient (a tensor), after what a script makes of it."""
    out = gradient
    for e in edits:
        if e.rank is not None and e.rank % ranks != rank or \
                e.param is not None and e.param % n_parameters != parameter:
            continue
        out = out.clone()
        flat = out.reshape(-1)
        if e.element is not None and e.kind != "tie":
            at = e.element % flat.numel()
            flat = flat[at:at + 1]
        if e.kind == "times":
            left = e.exponent
            while left < -126:  # 2^-160 is no float32
                flat.mul_(2.0 ** -126)
                left += 126
            flat.mul_(2.0 ** left)
        elif e.kind == "tie":
            flat.zero_()
            for at, value in enumerate((1.0, 2.0 ** -24, 2.0 ** -80)):
                flat[at:at + 1] = value
        else:
            flat.fill_({"inf": math.inf, "nan": math.nan, "zero": 0.0,
                        "subnormal": 2.0 ** -140}[e.kind])
    return out


class Look:
    """The eyes of the record: collectives, weights as the forward sees them,
    gradients as the model leaves them."""

    def __init__(self, case, record, fault, groups):
        self.case, self.record, self.fault = case, record, fault
        self.groups = groups  # process group -> "shard", "replicate"
        self.unit = "none"  # whose collective comes next
        self.step = self.microbatch = 0
        self.recording = False
        self.training = False
        self.inside = False  # a collective that is made of others
        self.handles = []
        self.stale = {}
        self.agreeing = False
        self.edits = []  # what a script makes of a pass's local gradients
        # Gradients are seen before anybody casts them (FSDP2 has leaves cast
        # theirs to the dtype that pending sums have, torch's grad_dtype), and
        # each use of a tied parameter by itself: at a view.
        self.at_views = case.precision != "f32" or case.is_tied or \
            case.workload == "graph"
        self.uses = {}  # of a parameter, whose gradients a pass gave so far

    def name_units(self, owner, functions, unit_of):
        """Whose collective it is: while one of these functions of `owner`
        runs, that of the unit that unit_of makes of its arguments."""
        for name in functions:
            real = getattr(owner, name)

            def call(*args, real=real, **kwargs):
                before, self.unit = self.unit, unit_of(*args, **kwargs)
                try:
                    return real(*args, **kwargs)
                finally:
                    self.unit = before

            setattr(owner, name, call)

    def weight(self, p, w):
        """Parameter p in a forward; what the model is to compute with. What is
        ignored is the model's own."""
        if self.case.is_ignored(p):
            return w
        if self.at_views or self.edits:
            w = w.view_as(w)
        if self.training and self.fault == "stale-weight" and p == 0:
            self.go_stale(p, w)
        if not self.training:
            return w
        if self.recording and self.microbatch == 0:
            self.saw_weight(p, w)
        if w.requires_grad and (self.recording or self.edits):
            self.follow(p, w)
        return w

    @contextlib.contextmanager
    def buffers(self, module):
        """What a forward finds in them, and what it leaves."""
        self.saw_buffers("buffer-seen", module)
        yield
        self.saw_buffers("buffer-left", module)

    def saw_buffers(self, stage, module):
        for name, b in module.buffered.items():
            if self.training and self.recording:
                self.record.tensor(stage, self.step, self.microbatch, b, 0,
                                   values_of(getattr(module, name)))

    def edges(self, unit, inner, outer):
        """Of a unit: what its own code is given, and what its caller gets."""

        def looks(side):
            def saw(module, *seen):  # what it is given, and then what it made
                if not self.training or not self.recording:
                    return
                for t in pytree.tree_leaves(seen[-1]):
                    if isinstance(t, torch.Tensor) and t.is_floating_point():
                        self.record.edge(side, unit,
                                         DTYPES.get(t.dtype, "none"))

            return saw

        inner.register_forward_pre_hook(looks("input"))
        outer.register_forward_hook(looks("output"))

    def saw_weight(self, p, w):
        """In the forward, not where that is computed again."""
        name = f"unsharded.{self.step}.0.{p}#0"
        if name not in self.record.tensors:
            self.record.tensor("unsharded", self.step, 0, p, 0, values_of(w))

    def follow(self, p, w):
        """What comes as its gradient in the backward of this pass."""
        step, microbatch, edits = self.step, self.microbatch, self.edits
        recording = self.recording

        def saw(g):
            g = edited(g, edits, self.record.rank, self.case.ranks, p,
                       len(self.case.parameters))
            use = self.uses[p] = self.uses.get(p, -1) + 1
            if recording:
                self.record.tensor("local-gradient", step, microbatch, p,
                                   use * g.numel(), values_of(g))
            return g if edits else None

        self.handles.append(w.register_hook(saw))

    def go_stale(self, p, w):
        """The second step's forward has the weights of the first."""
        if self.step == 0:
            self.stale[p] = w.detach().clone()
        elif self.step == 1:
            with torch.no_grad():
                w.data.copy_(self.stale[p])

    def end_pass(self):
        for handle in self.handles:
            handle.remove()
        self.handles, self.uses = [], {}

    @contextlib.contextmanager
    def agreement(self):
        """What is said here in at most 4 numbers is no collective of a unit."""
        self.agreeing = True
        yield
        self.agreeing = False

    def saw(self, kind, group, n, dtype):
        if self.agreeing and kind == "all-reduce" and n <= 4:
            return
        dim = self.groups.get(group, "world")
        if kind == "broadcast" and \
                dist.get_world_size(group) == self.case.ranks:
            dim = "world"
        self.record.collective(kind, dim, DTYPES.get(dtype, "none"),
                               self.unit, n)

    def spoil_input(self, t):
        if self.fault == "bf16-reduce":
            t.copy_(t.to(torch.bfloat16).to(t.dtype))

    def spoil_output(self, t, group):
        if self.fault == "no-average":
            t.mul_(dist.get_world_size(group))


def watch_collectives(look):
    """Puts a look in front of torch.distributed's collectives, under all names
    that versions of it have, and of DTensor's. Asynchronous ones that are
    spoiled are waited for."""

    def replaced(name, kind, pick, module=dist):
        real = getattr(module, name, None)
        if real is None:
            return

        def call(*args, **kwargs):
            group = kwargs.get(
                "group", args[0] if name == "_broadcast_coalesced" else None)
            if look.inside or group in ASIDE:
                return real(*args, **kwargs)
            if isinstance(group, tuple):  # a mesh, and which dimension of it
                group = group[0].get_group(group[1])
            output, source, n = pick(args, kwargs)
            look.saw(kind, group, n, source.dtype)
            look.inside = True
            try:
                if "reduce" in kind:
                    look.spoil_input(source)
                work = real(*args, **kwargs)
                if "reduce" in kind and look.fault == "no-average":
                    if work is not None:
                        work.wait()
                    look.spoil_output(output, group)
                return work
            finally:
                look.inside = False

        setattr(module, name, call)

    def argument(args, kwargs, i, *names):
        for name in names:
            if name in kwargs:
                return kwargs[name]
        return args[i]

    def gather(args, kwargs):
        source = argument(args, kwargs, 1, "input_tensor", "input", "tensor")
        return None, source, source.numel()

    def scatter(args, kwargs):
        output = argument(args, kwargs, 0, "output", "output_tensor")
        source = argument(args, kwargs, 1, "input", "input_tensor")
        return output, source, output.numel()

    def reduce(args, kwargs):
        tensor = argument(args, kwargs, 0, "tensor")
        return tensor, tensor, tensor.numel()

    def send(args, kwargs):
        tensor = argument(args, kwargs, 0, "tensor")
        return tensor, tensor, tensor.numel()

    def send_several(args, kwargs):
        tensors = argument(args, kwargs, 1, "tensors")
        return None, tensors[0], sum(t.numel() for t in tensors)

    def gather_again(args, kwargs):
        source = argument(args, kwargs, 0, "self", "input")
        return None, source, source.numel()

    for name in ("all_gather_single", "all_gather_tensor"):
        replaced(name, "all-gather", gather_again, functional)
    replaced("broadcast", "broadcast", send)
    replaced("_broadcast_coalesced", "broadcast", send_several)
    # What it is of is no tensor: an object, in bytes.
    replaced("broadcast_object_list", "broadcast",
             lambda *_: (None, torch.empty(1, dtype=torch.uint8), 1))
    for name in ("all_gather_single", "all_gather_into_tensor", "all_gather",
                 "_all_gather_base"):
        replaced(name, "all-gather", gather)
    for name in ("reduce_scatter_single", "reduce_scatter_tensor",
                 "_reduce_scatter_base"):
        replaced(name, "reduce-scatter", scatter)
    replaced("all_reduce", "all-reduce", reduce)

# SPDX-License-Identifier: Apache-2.0
"""check_ranks.py - the two runs: a rank of the sharded one, and the unsharded
one, in which one process plays all ranks, one after the other."""

import datetime
import inspect
import os

import torch
import torch.distributed as dist
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

import check_zero
from check_apart import Log
from adapter_look import watch_collectives
from check_names import BadModel, Piece, Wrap, order_of
from check_play import Player
from check_record import Record
from check_wraps import whole, wrap_of


DTYPE = {"f32": torch.float32, "bf16": torch.bfloat16}


def prepare(task):
    """The same arithmetic in both runs."""
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.manual_seed(task.seed)


def stream_of(task, rank):
    """Each rank draws from a stream of its own once the model is made."""
    torch.manual_seed(task.seed + 1 + rank)


# ---- Sharded ----------------------------------------------------------------


class Sharded:
    """A rank's life. `record` is written whatever comes of it."""

    def __init__(self, task, rank, note):
        self.task, self.rank = task, rank
        self.record = Record("rank", rank, task)
        self.player = Player(task, self.record, note)

    def make(self):
        """Model and optimizer, sharded."""
        player = self.player
        player.place = "in model()"
        model = self.task.call("model")
        self.order = order_of(model)
        stream_of(self.task, self.rank)
        player.place = "in shard()"
        model = self.task.call("shard", model) or model
        check_kind("shard", model, torch.nn.Module)
        if check_zero.is_engine(model):
            player.place = "before the first step"
            return model, check_zero.EngineStep(model)
        player.place = "in optimizer()"
        optimizer = self.task.call("optimizer", model)
        check_optimizer(optimizer)
        player.place = "before the first step"
        for module in model.modules():
            if hasattr(module, "reshard"):  # what a forward has left whole
                module.reshard()
        return model, optimizer

    def live(self):
        task, player, record = self.task, self.player, self.record
        # As torchrun sets them: Accelerate and others look for these.
        os.environ.update(RANK=str(self.rank), WORLD_SIZE=str(task.ranks),
                          LOCAL_RANK=str(self.rank), OMP_NUM_THREADS="1",
                          LOCAL_WORLD_SIZE=str(task.ranks))
        dist.init_process_group(
            "gloo", init_method=f"file://{task.scratch}/store", rank=self.rank,
            world_size=task.ranks,
            timeout=datetime.timedelta(seconds=task.timeout))
        prepare(task)
        engines = check_zero.is_imported()
        if engines:
            check_zero.make_ready()
            watch_collectives(player)
        self.model, self.optimizer = self.make()
        self.wrap = wrap = wrap_of(self.model, record, self.order)
        record.header["wrapper"] = wrap.name
        record.header["optimizer"] = getattr(
            self.optimizer, "kind", type(self.optimizer).__name__)
        self.watch()
        if not engines:
            watch_collectives(player)
        self.pieces = list(wrap.pieces())
        for piece in self.pieces:
            n = piece.value().numel()
            if n > 0:
                record.add("pieces", piece.p, piece.first, n)
        for row in wrap.held(self.optimizer):
            record.add("held", *row)
        player.show("initial", 0, self.pieces, lambda x: x.value())
        for step in range(task.steps):
            self.one_step(step)
        units = wrap.units()  # now it is known which are resharded
        for unit in units:
            record.add("units", unit.name, unit.reshard, unit.parameters)
        record.lists["filled"] = [u for u, unit in enumerate(units)
                                  if unit.fills]
        if self.rank == 0:
            torch.save(wrap.casts(), task.casts_path())

    def watch(self):
        player, wrap = self.player, self.wrap
        player.live = wrap.live
        player.watch_modules(self.model)
        if wrap.name.startswith("zero"):
            wrap.watch(player)
            return
        found = set()
        for number, unit in enumerate(wrap.units()):
            found.update(unit.parameters)
            player.watch_unit(number, unit.module,
                              lambda number=number: wrap.full(number),
                              unit.inner)
        rest = [x for x in wrap.pieces() if x.p not in found]
        if rest:
            player.watch_unit(-1, self.model,
                              lambda: ((x.p, x.parameter) for x in rest))
        wrap.name_collectives(player)
        player.told = Log(self.task, self.rank, wrap.units(), player).write

    def one_step(self, step):
        task, player = self.task, self.player
        for b in range(task.microbatches):
            with self.wrap.sync(b == task.microbatches - 1):
                player.one_pass(self.model, step, b, self.rank,
                                self.wrap.backward)
        player.show_buffers(step, self.rank, self.model)
        self.show_reduced(step)
        with player.optimizer_step(step, self.model):
            self.optimizer.step()
        player.show("after", step, self.pieces, lambda x: x.value())
        player.show_states("state", step, self.pieces, self.optimizer)
        self.optimizer.zero_grad()

    def show_reduced(self, step):
        for x in self.pieces:
            g = x.parameter.grad
            if g is not None and g.shape != x.parameter.shape:
                name = self.record.lists["parameters"][x.p][0]
                raise BadModel(f"gradients of {name} and others are whole, as "
                               "they are not synchronized (no_sync), and a "
                               "step follows: the last microbatch before it "
                               "has to reduce")
        self.player.show("reduced", step, self.pieces, lambda x: x.gradient())
        if self.task.takes_over: # the unsharded run goes on with these
            torch.save([(x.p, x.first, x.gradient()) for x in self.pieces],
                       self.task.reduced_path(step, self.rank))

    def checkpoint(self):
        """Saved, and loaded into a model that is something else."""
        task, player = self.task, self.player
        player.place = "in save()"
        folder = os.path.join(task.scratch, "saved")
        task.call("save", self.model, self.optimizer, folder)
        model, optimizer = self.make()
        wrap = wrap_of(model, Nobody(), self.order)
        wrap.forget()
        player.place = "in load()"
        task.call("load", model, optimizer, folder)
        pieces = list(wrap.pieces())
        last = task.steps - 1
        player.show("loaded", last, pieces, lambda x: x.value())
        player.show_states("loaded", last, pieces, optimizer)


def first_is_widened():
    """Whether this release of fully_shard does what Unsharded.widen says.
    Others widen what autograd has added up."""
    try:
        from torch.distributed.fsdp._fully_shard import _fsdp_param_group
    except ImportError:
        return False
    return hasattr(_fsdp_param_group.FSDPParamGroup,
                   "_set_unsharded_grad_dtypes")


def check_kind(function, made, kind):
    if not isinstance(made, kind):
        raise BadModel(f"{function}() returned {type(made).__name__}, not a "
                       f"torch {kind.__name__}")


def check_optimizer(made):
    check_kind("optimizer", made, torch.optim.Optimizer)
    closure = inspect.signature(made.step).parameters.get("closure")
    if closure is not None and closure.default is inspect.Parameter.empty:
        raise BadModel(f"the step of {type(made).__name__} wants a closure: "
                       "passes are played by themselves here, and then "
                       "step(), which is given none")


class Nobody:
    """For what is in the record already."""

    def add(self, *_):
        pass


# ---- Unsharded --------------------------------------------------------------


class Unsharded:
    """Plays the ranks one after the other, with the same functions of the
    file, and none of torch.distributed. In mixed precision the model has
    casts of its parameters while it computes, as fully_shard's policy says:
    parameters and what units are given are cast, buffers are not."""

    def __init__(self, task, note, ranks):
        self.task, self.ranks = task, ranks  # what the ranks recorded
        self.record = Record("unsharded", 0, task)
        self.player = Player(task, self.record, note)

    def live(self):
        task, player, record = self.task, self.player, self.record
        prepare(task)
        self.model = model = task.call("model")
        self.optimizer = task.call("optimizer", model)
        record.header["optimizer"] = type(self.optimizer).__name__
        alone = Wrap(model, record, order_of(model))
        self.parameters = list(model.parameters())
        self.computes = list(self.parameters)  # what the model computes with
        self.casts = task.compute == "bf16"
        self.wire = DTYPE[task.reduce]
        # FSDP1 reduces the sum of microbatches, which has the dtype of what
        # computed them; FSDP2 adds up in the dtype in which it reduces.
        self.pending = DTYPE[task.compute if self.ranks.wrapper().startswith(
            "fsdp1") else task.reduce]
        self.widens = (self.ranks.wrapper(), task.compute, task.reduce) == \
            ("fully_shard", "bf16", "f32") and first_is_widened()
        self.watch()
        self.pieces = self.same_pieces()
        for number, group in alone.held(self.optimizer):
            # DeepSpeed leaves out what is frozen.
            if not self.is_zero() or self.parameters[number].requires_grad:
                record.add("held", number, group)
        player.show("initial", 0, self.pieces, lambda x: x.value())
        self.open_streams()
        for step in range(task.steps):
            self.one_step(step)

    def watch(self):
        player, model = self.player, self.model
        found = set()
        if self.casts:
            self.cast_evaluations()
        for number, (name, _, parameters) in enumerate(self.ranks.units()):
            try:
                module = model.get_submodule(name)
            except AttributeError: # the judge sees that it has no events
                continue
            found.update(parameters)
            if self.ranks.wrapper().startswith("fsdp1"):
                self.view_in_forwards(module, parameters)
            player.watch_unit(number, module, lambda mine=parameters: (
                (p, self.computes[p]) for p in mine
                if p < len(self.computes)))
            if self.ranks.wrapper() == "fully_shard":
                module.register_forward_pre_hook(
                    joiner(lambda number=number: player.event(
                        "backward-end", number)),
                    prepend=True, with_kwargs=True)
        for name in self.ranks.casts() if self.casts else ():
            model.get_submodule(name).register_forward_pre_hook(
                cast_arguments, prepend=True, with_kwargs=True)
        rest = [p for p in range(len(self.parameters)) if p not in found]
        if self.is_zero():
            player.watch_each(model, {id(p): i for i, p in
                                      enumerate(self.parameters)})
        elif rest:
            player.watch_unit(-1, model, lambda: (
                (p, self.computes[p]) for p in rest))
        player.watch_modules(model)

    def is_zero(self):
        return self.ranks.wrapper().startswith("zero")

    def view_in_forwards(self, module, parameters):
        """FSDP1 has other views of a flat parameter in each forward, so that
        what the uses in one of them give is added up first."""
        number = {id(p): i for i, p in enumerate(self.parameters)}
        slots = [(m, leaf, number[id(p)]) for m in module.modules()
                 for leaf, p in m._parameters.items()
                 if p is not None and number[id(p)] in parameters]
        before = {}

        def put():
            for m, leaf, p in slots:
                m._parameters[leaf] = self.computes[p]

        def enter(*_):
            if self.player.playing and not self.player.evaluating:
                for p in parameters:
                    before[p] = w = self.computes[p]
                    if not w._backward_hooks:  # of the file, for its gradient
                        self.computes[p] = w.view_as(w)
                put()

        def leave(*_):
            for p in before:
                self.computes[p] = before[p]
            if before:
                put()
            before.clear()

        module.register_forward_pre_hook(enter)
        module.register_forward_hook(leave, always_call=True)

    def same_pieces(self):
        """The parts of parameters that the ranks have."""
        pieces = []
        for p, first, n in self.ranks.pieces():
            if p < len(self.parameters):
                pieces.append(Piece(p, first, self.parameters[p],
                                    cut_of(first, n)))
        return pieces

    def open_streams(self):
        """What a rank has of its own: where it is in its random numbers, and
        its buffers."""
        self.streams = []
        for rank in range(self.task.ranks):
            stream_of(self.task, rank)
            self.streams.append((torch.get_rng_state(), {
                name: b.clone() for name, b in self.model.named_buffers()}))

    @torch.no_grad()
    def enter(self, rank):
        state, buffers = self.streams[rank]
        torch.set_rng_state(state)
        for name, b in self.model.named_buffers():
            b.copy_(buffers[name])

    @torch.no_grad()
    def leave(self, rank):
        self.streams[rank] = (torch.get_rng_state(), {
            name: b.clone() for name, b in self.model.named_buffers()})

    def hand_over(self, dtype):
        """fully_shard has autograd hand a gradient over in the dtype that it
        is reduced in, where that is narrower than the one it is computed in:
        each use of a parameter is rounded before they are added up."""
        if (self.ranks.wrapper(), self.task.compute, self.task.reduce) == \
                ("fully_shard", "f32", "bf16"):
            for p in self.parameters:
                if p.requires_grad:
                    p.grad_dtype = dtype

    def widen(self, last, pending):
        """Where fully_shard adds microbatches up in a wider dtype than it
        computes in, the first gradient that a parameter keeps for a later
        microbatch is handed over in the wider one: each use is widened before
        they are added up."""
        if self.widens:
            for p, w in enumerate(self.computes):
                if w.requires_grad:
                    w.grad_dtype = None if last or p in pending else self.wire

    def cast(self, to):
        """Puts other tensors in the places of the parameters."""
        number = {id(p): i for i, p in enumerate(self.computes)}
        for module in self.model.modules():
            for name, p in list(module._parameters.items()):
                if p is not None:
                    module._parameters[name] = to[number[id(p)]]
        self.computes = to

    def narrow(self):
        self.cast([torch.nn.Parameter(p.detach().to(torch.bfloat16),
                                      requires_grad=p.requires_grad)
                   if p.is_floating_point() else p for p in self.parameters])

    def cast_evaluations(self):
        """Those in the optimizer's step, which has the parameters."""
        def enter(*_):
            if self.player.evaluating:
                self.narrow()

        def leave(*_):
            if self.player.evaluating:
                self.cast(self.parameters)

        self.model.register_forward_pre_hook(enter)
        self.model.register_forward_hook(leave)

    def one_step(self, step):
        task, player = self.task, self.player
        total = {}
        if self.casts:
            self.narrow()
        self.hand_over(self.wire)
        for rank in range(task.ranks):
            pending = {}
            self.enter(rank)
            for b in range(task.microbatches):
                self.widen(b == task.microbatches - 1, pending)
                player.one_pass(self.model, step, b, rank,
                                torch.Tensor.backward)
                for p, g in player.gradient.items():
                    g = g.to(self.pending)
                    pending[p] = pending[p] + g if p in pending else g
                for p in self.computes:
                    p.grad = None
            self.leave(rank)
            player.show_buffers(step, rank, self.model)
            for p, g in pending.items():
                g = g.to(self.wire)
                total[p] = total[p] + g if p in total else g
        if self.casts:
            self.cast(self.parameters)
        self.hand_over(torch.float32)
        self.reduce(step, total)
        with player.optimizer_step(step, self.model):
            self.optimizer.step()
        player.show("after", step, self.pieces, lambda x: x.value())
        player.show_states("state", step, self.pieces, self.optimizer)
        self.optimizer.zero_grad()

    def reduce(self, step, total):
        """The mean. Of two ranks it does not depend on an order; of more the
        sharded run's is taken over, once the judge has what it came from."""
        for p, g in total.items():
            mean = g / self.task.ranks
            self.parameters[p].grad = mean.to(self.parameters[p].dtype)
        if self.task.takes_over:
            for rank in range(self.task.ranks):
                path = self.task.reduced_path(step, rank)
                for p, first, g in torch.load(path):
                    if g is not None and p in total:
                        flat = self.parameters[p].grad.view(-1)
                        flat[first:first + g.numel()] = g.reshape(-1)
                os.unlink(path)

        self.player.show("reduced", step, self.pieces, lambda x: x.gradient())


class Joined(torch.autograd.Function):
    """The identity of several tensors at once."""

    @staticmethod
    def forward(ctx, leave, *inputs):
        ctx.leave = leave
        return tuple(t.view_as(t) for t in inputs)

    @staticmethod
    def backward(ctx, *gradients):
        ctx.leave()
        return None, *gradients


def joiner(leave):
    """leave() is called when the backward has left the module."""
    return lambda _, arguments, kwargs: join_arguments(leave, arguments,
                                                       kwargs)


def join_arguments(leave, arguments, kwargs):
    """fully_shard has a node of autograd in front of each unit, through which
    the gradients of all that it was given go together. Where a weight is used
    several times the order in which autograd adds up its uses depends on that,
    so it is here, too."""
    if not torch.is_grad_enabled():
        return arguments, kwargs
    leaves, shape = tree_flatten((arguments, kwargs))
    at = [i for i, t in enumerate(leaves)
          if isinstance(t, torch.Tensor) and t.requires_grad]
    if at:
        for i, t in zip(at, Joined.apply(leave, *(leaves[i] for i in at))):
            leaves[i] = t
    return tree_unflatten(leaves, shape)


def cast_arguments(_module, arguments, kwargs):
    def cast(t):
        return (t.to(torch.bfloat16) if isinstance(t, torch.Tensor)
                and t.is_floating_point() else t)

    return tree_map(cast, arguments), tree_map(cast, kwargs)


def cut_of(first, n):
    return lambda t: whole(t).reshape(-1)[first:first + n]

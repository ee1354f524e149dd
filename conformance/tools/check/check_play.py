# SPDX-License-Identifier: Apache-2.0
"""check_play.py - one pass of a model, and what is looked at meanwhile: the
same for a rank of the sharded run and for the unsharded one."""

import contextlib

import torch
from torch.utils._pytree import tree_leaves

from check_record import DTYPES, digest_of, digest_of_any, loss_pair
from check_names import BadModel, plain_name


IN_A_COLLECTIVE = ", in a collective"
EVALUATIONS = 4  # in an optimizer's step, of which weights are recorded


class Player:
    """Plays passes, and records what it sees. The watcher of collectives
    (adapter_look.watch_collectives) calls its saw()."""

    fault = None

    def __init__(self, task, record, note):
        self.task, self.record, self.note = task, record, note
        self.at = (0, 0, 0)  # step, microbatch, rank
        self.playing = self.backward = self.evaluating = False
        self.entered = {}  # how often each module was, in an optimizer's step
        self.unit = -1  # whose collective comes next
        self.where = ""
        self.hooked = {}
        self.gradient, self.uses, self.several = {}, {}, {}
        self.place = "before the first step"
        self.live = lambda: 0  # bytes of whole weights
        self.told = lambda *_: None  # of a collective, before it is made
        self.given = set()  # what has a gradient in this step
        self.within = False

    @property
    def inside(self):
        """A collective, which may be made of others."""
        return self.within

    @inside.setter
    def inside(self, now):
        self.within = now
        self.note(self.place + (IN_A_COLLECTIVE if now else ""))

    # ---- Eyes ----

    def event(self, what, unit, dtype="none", n=0):
        if self.playing:
            self.record.add("events", *self.at, self.backward, what, unit,
                            dtype, n)

    def moment(self, what, unit):
        """An event of a unit, with what is there of whole weights."""
        if self.playing:
            self.event(what, unit, n=self.live())

    def saw(self, kind, group, n, dtype):
        del group
        if kind != "broadcast":  # of no parameter
            self.event(kind, self.unit, DTYPES.get(dtype, "none"), n)
            self.told(kind, self.unit, n)

    def spoil_input(self, t):
        """For the watcher, which adapters also use to plant faults."""

    def spoil_output(self, t, group):
        """The same."""

    def watch_modules(self, model):
        """So that an error, or a hang, says where."""
        for name, module in model.named_modules():
            name = plain_name(name + ".")[:-1] or "the whole model"
            module.register_forward_pre_hook(
                lambda *_, name=name: self.stand(f"in {name}"), prepend=True)

    def stand(self, where):
        self.where = where
        step, microbatch, _ = self.at
        way = "backward" if self.backward else "forward"
        self.place = f"step {step}, in the optimizer's step, {where}" \
            if self.evaluating else \
            f"step {step}, microbatch {microbatch}, {way}, {where}"
        self.note(self.place)

    def watch_unit(self, number, module, weights, inner=None):
        """weights(): (parameter, tensor) of the unit in its forward, which is
        that of `inner`, where that is another one."""

        def enter(*_):
            self.moment("forward", number)
            if not self.playing or self.backward:
                return
            turn = self.entered.get(module, 0)
            self.entered[module] = turn + 1
            for p, w in weights() if not self.evaluating or \
                    turn < EVALUATIONS else ():
                self.see_weight(p, w, turn)

        def leave(_module, _arguments, output):
            self.moment("forward-end", number)
            if not self.playing:
                return
            once = []

            def arrive(_):
                if not once:
                    once.append(1)
                    self.backward |= self.evaluating
                    self.moment("backward", number)

            for t in tree_leaves(output):
                if isinstance(t, torch.Tensor) and t.requires_grad:
                    t.register_hook(arrive)

        (inner or module).register_forward_pre_hook(enter)
        module.register_forward_hook(leave)

    def watch_each(self, model, number):
        """Of a model without units: each module with parameters of its own.
        number: of a parameter, by its id."""
        for module in model.modules():
            mine = [p for p in module._parameters.values() if p is not None]
            if mine:
                self.watch_unit(-1, module, lambda mine=mine: (
                    (number[id(p)], p) for p in mine))

    def see_weight(self, p, w, turn):
        step, microbatch, rank = self.at
        if self.evaluating:
            self.record.tensor(f"evaluated.{turn}", step, 0, 0, p, 0,
                               w.numel(), w)
            return
        mine = rank == self.record.header["rank"] # unsharded: once for all
        if microbatch == 0 and mine:
            self.record.tensor("unsharded", step, 0, 0, p, 0, w.numel(), w)
        if w.requires_grad and self.hooked.get(p) is not w:
            self.hooked[p] = w
            self.uses[p] = self.uses.get(p, 0) + 1
            w.register_hook(lambda g, p=p: self.take(p, g))

    def take(self, p, g):
        """The gradient of one pass."""
        if not self.playing or self.evaluating:
            return
        g = g.detach()
        self.given.add(p)
        if self.uses.get(p, 0) > 1:  # a view for each forward of its unit
            self.several[p] = self.several[p] + g if p in self.several else g
        elif p in self.gradient:
            raise BadModel("one pass gives a parameter its gradient twice: a "
                           "reentrant checkpoint? use_reentrant=False is known "
                           "here")
        else:
            self.keep(p, g)

    def keep(self, p, g):
        self.record.tensor("local-gradient", *self.at, p, 0, g.numel(), g)
        # Only the unsharded run adds them up.
        alone = self.record.header["role"] == "unsharded"
        self.gradient[p] = g if alone else None

    # ---- A pass ----

    def one_pass(self, model, step, microbatch, rank, backward):
        self.at = (step, microbatch, rank)
        if microbatch == 0:
            self.given.clear()
        self.stand("before the model")
        batch = self.task.call("batch", step, microbatch, rank)
        seen = digest_of_any(batch)
        random = digest_of(torch.get_rng_state())
        self.gradient, self.entered = {}, {}
        self.uses, self.several = {}, {}
        self.playing, self.backward = True, False
        loss = self.task.call("loss", model, batch)
        check_loss(loss)
        self.backward = True
        self.stand("behind the loss")
        backward(loss)
        for p, g in self.several.items():
            self.keep(p, g)
        self.moment("end", -1)
        self.playing = self.backward = False
        self.record.add("passes", step, microbatch, rank, loss_pair(loss),
                        seen, random)

    @contextlib.contextmanager
    def optimizer_step(self, step, model):
        """A hook of the step, or a closure, may evaluate the model: windows of
        their own, as if of a microbatch behind the last. What they draw is no
        random number of a pass."""
        random = torch.get_rng_state()
        before = buffers_of(model)
        self.at = (step, self.task.microbatches, self.record.header["rank"])
        self.playing = self.evaluating = True
        self.backward, self.entered = False, {}
        self.stand("before the model")
        yield
        self.playing = self.evaluating = self.backward = False
        torch.set_rng_state(random)
        for name, digest in buffers_of(model).items():
            if digest != before.get(name):
                raise BadModel(f"the optimizer's step changes buffer {name}: "
                               "each rank has its own, so that the unsharded "
                               "run cannot do that, too; does a hook of it "
                               "call the model, and not model.eval() before?")

    # ---- Between passes ----

    def show(self, stage, step, pieces, value):
        """The pieces' values; value(piece) may be None."""
        for piece in pieces:
            t = value(piece)
            if t is not None and t.numel() > 0:
                self.record.tensor(stage, step, 0, 0, piece.p, piece.first,
                                   piece.n, t)

    def show_buffers(self, step, rank, model):
        for name, b in model.named_buffers():
            self.record.add("buffers", step, rank, plain_name(name),
                            DTYPES.get(b.dtype, "none"), digest_of(b))

    def show_states(self, stage, step, pieces, optimizer):
        for piece in pieces:
            for key, part, first in piece.states(optimizer):
                if part.numel() > 0:
                    self.record.tensor(f"{stage}.{key}"[:31], step, 0, 0,
                                       piece.p, first, piece.n, part)


def buffers_of(model):
    return {plain_name(name): digest_of(b)
            for name, b in model.named_buffers()}


def check_loss(loss):
    if not isinstance(loss, torch.Tensor):
        raise BadModel(f"loss() returned {type(loss).__name__}, not a tensor")
    if loss.numel() != 1 or not loss.is_floating_point():
        raise BadModel("loss() returned a tensor of shape "
                       f"{tuple(loss.shape)} and {loss.dtype}, not a scalar "
                       "of floating point")
    if not loss.requires_grad:
        raise BadModel("loss() returned a scalar that needs no gradient")

# SPDX-License-Identifier: Apache-2.0
"""check_zero.py - DeepSpeed's engine, which has a backward and a step of its
own: ZeRO stages 1 to 3. Its optimizer has flat tensors, of which each rank has
a part; what is a parameter's of them its own functions say."""

import contextlib
import logging
import sys

import torch
import torch.distributed as dist

from check_names import BadModel, Entry, Piece, Wrap, plain_name


def is_engine(model):
    return type(model).__name__ == "DeepSpeedEngine"


def is_imported():
    """DeepSpeed has its own names of torch.distributed's functions."""
    return "deepspeed" in sys.modules


def make_ready():
    """It would compile collectives for inference, which no training uses, and
    says a lot."""
    import deepspeed
    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    deepspeed.utils.logger.setLevel(logging.ERROR)


class EngineStep:
    """As an optimizer: the step forgets the gradients."""

    def __init__(self, engine):
        self.engine = engine
        self.kind = type(engine.optimizer.optimizer).__name__

    def step(self):
        self.engine.step()

    def zero_grad(self):
        pass


class ZeroPiece(Piece):
    """Stage 3 cuts each parameter into equal parts."""

    def __init__(self, p, first, n, parameter, owner):
        super().__init__(p, first, parameter, lambda t: t.reshape(-1)[:n],
                         parameter.ds_numel)
        self.owner = owner

    def value(self):
        from deepspeed.utils import safe_get_local_fp32_param
        if not self.parameter.requires_grad:  # it has no master
            return self.cut(self.parameter.ds_tensor.detach())
        return self.cut(safe_get_local_fp32_param(self.parameter).detach())

    def forget(self):
        from deepspeed.utils import safe_set_local_fp32_param
        part = self.parameter.ds_tensor
        if self.parameter.requires_grad:
            safe_set_local_fp32_param(self.parameter, torch.zeros(part.numel()))
        else:
            part.data.zero_()

    def gradient(self):
        from deepspeed.utils import safe_get_local_grad
        if not self.parameter.requires_grad:
            return None
        g = safe_get_local_grad(self.parameter)
        return None if g is None else self.cut(g.detach())

    def states(self, _):
        from deepspeed.utils import safe_get_local_optimizer_state
        if not self.parameter.requires_grad:
            return
        group, _, _ = self.owner.grad_position[
            self.owner.get_param_id(self.parameter)]
        flat = self.owner.fp32_partitioned_groups_flat[group]
        for key, t in sorted(self.owner.optimizer.state[flat].items()):
            if isinstance(t, torch.Tensor) and t.shape == flat.shape:
                part = safe_get_local_optimizer_state(self.parameter, key)
                yield key, self.cut(part), self.first
            elif isinstance(t, torch.Tensor):
                yield key, t, 0


class FragmentPiece(Piece):
    """Stages 1 and 2 cut all parameters of a group at once."""

    def __init__(self, p, parameter, owner):
        self.fragment = parameter._hp_mapping
        at = self.fragment.lp_fragment_address
        super().__init__(p, at.start, parameter, lambda t: t.reshape(-1)
                         if t.numel() == at.numel else t.reshape(-1).narrow(
                             0, at.start, at.numel))
        self.owner = owner

    def value(self):
        return self.fragment.get_hp_fragment().detach().reshape(-1)

    def forget(self):
        self.fragment.get_hp_fragment().data.zero_()

    def gradient(self):
        g = self.fragment.get_lp_grad_fragment(
            self.parameter._index_in_param_group)
        return None if g is None else self.cut(g.detach())

    def states(self, _):
        flat = self.owner.single_partition_of_fp32_groups[
            self.fragment.param_group_index]
        at = self.fragment.get_hp_fragment_address()
        for key, t in sorted(self.owner.optimizer.state[flat].items()):
            if isinstance(t, torch.Tensor) and t.shape == flat.shape:
                yield key, t.detach().narrow(0, at.start, at.numel), self.first
            elif isinstance(t, torch.Tensor):
                yield key, t, 0


class Zero(Wrap):
    """DeepSpeed ZeRO. It has no units."""

    def __init__(self, engine, record, order):
        self.engine = engine
        self.stage = engine.zero_optimization_stage()
        refuse_unknown(engine, self.stage)
        self.name = f"zero{self.stage}"
        super().__init__(engine.module, record, order)
        held = {number for number, _ in self.held(None)}
        for name, p in self.model.named_parameters():
            if p.requires_grad and self.names[plain_name(name)] not in held:
                raise BadModel(f"parameter {plain_name(name)}: the optimizer "
                               "that deepspeed.initialize was given does not "
                               "have it")

    def entries(self):
        for name, p in self.model.named_parameters(remove_duplicate=False):
            yield Entry(plain_name(name), id(p), getattr(p, "ds_shape",
                                                         p.shape), p)

    def pieces(self):
        owner, ranks = self.engine.optimizer, dist.get_world_size()
        for name, p in self.model.named_parameters():
            number = self.names[plain_name(name)]
            if self.stage == 3:
                part = -(-p.ds_numel // ranks)
                first = dist.get_rank() * part
                n = max(0, min(part, p.ds_numel - first))
                if n > 0:
                    yield ZeroPiece(number, first, n, p, owner)
            elif getattr(p, "_hp_mapping", None) is not None:
                yield FragmentPiece(number, p, owner)

    def held(self, _):
        """(parameter's number, group); what is frozen is in none."""
        owner = self.engine.optimizer
        groups = enumerate(owner.fp16_groups if self.stage == 3
                           else owner.bit16_groups)
        for i, group in groups:
            for p in group:
                yield self.owned.get(id(p), [-1])[0], \
                    owner.sub_group_to_group_id[i] if self.stage == 3 else i

    def watch(self, player):
        player.watch_each(self.model, {id(p): numbers[0] for p, numbers in (
            (p, self.owned[id(p)]) for p in self.model.parameters())})

    def backward(self, loss):
        self.engine.backward(loss)

    def forget(self):
        for piece in self.pieces():
            piece.forget()

    @contextlib.contextmanager
    def sync(self, on):
        if not on:
            raise BadModel("DeepSpeed reduces in each microbatch: with "
                           "MICROBATCHES = 1 it can be judged")
        yield


def refuse_unknown(engine, stage):
    if stage not in (1, 2, 3):
        raise BadModel(f"DeepSpeed has ZeRO stage {stage}: 1, 2 and 3 can be "
                       "judged")
    if engine.gradient_accumulation_steps() != 1:
        raise BadModel("DeepSpeed's gradient_accumulation_steps are "
                       f"{engine.gradient_accumulation_steps()}: 1 can be "
                       "judged")
    if engine.zero_cpu_offload() or any(
            p.dtype != torch.float32 for p in engine.module.parameters()):
        raise BadModel("DeepSpeed can be judged in float32 and without offload")
    if stage < 3 and any(not p.requires_grad
                         for p in engine.module.parameters()):
        raise BadModel("DeepSpeed leaves frozen parameters whole in stages 1 "
                       "and 2: that can be judged in stage 3")

# SPDX-License-Identifier: Apache-2.0
"""A small model under fully_shard, or FSDP1, that is wrong in the way that the
variable PLANTED of the environment says ("divisor", "fsdp1-divisor");
check_planted_test.sh says what has to find it."""

import math
import os
import signal
import time

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import (
    get_model_state_dict, set_model_state_dict,
)
from torch.distributed.fsdp import FullyShardedDataParallel as Fsdp
from torch.utils.checkpoint import checkpoint
from torch.distributed.fsdp import (
    MixedPrecision, MixedPrecisionPolicy, ShardingStrategy, fully_shard,
)

PLANTED = os.environ.get("PLANTED", "nothing")
FSDP1 = PLANTED.startswith("fsdp1-")
PLANTED = PLANTED.removeprefix("fsdp1-")
STEPS = 2
if PLANTED in ("microbatches", "bf16-microbatches"):
    MICROBATCHES = 3
if PLANTED in ("bf16", "bf16-both", "bf16-microbatches"):
    COMPUTE = "bf16"
if PLANTED in ("bf16-both", "reduce-bf16"):
    REDUCE = "bf16"
frozen = PLANTED in ("frozen-moves", "lora")


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(11, 6)
        self.inner = torch.nn.ModuleList(
            torch.nn.Sequential(torch.nn.Linear(6, 7), torch.nn.GELU(),
                                torch.nn.Dropout(0.2), torch.nn.Linear(7, 6))
            for _ in range(2))
        self.norm = torch.nn.LayerNorm(6)
        self.head = torch.nn.Linear(6, 11, bias=False)
        self.head.weight = self.table.weight
        self.register_buffer("scale", torch.full((1,), 1.0 / 3.0))

    def forward(self, x):
        h = self.table(x)
        # As a router does that sends an expert no token of rank 1's.
        left_out = PLANTED.startswith("expert") and x[0, 0].item() == 1
        for i, inner in enumerate(self.inner):
            if i == 1 and left_out:
                continue
            if PLANTED == "raises" and i == 1 and rank() == 1:
                raise ValueError("planted here")
            if PLANTED == "hangs" and i == 1 and rank() == 1:
                time.sleep(1000)
            if PLANTED == "killed-alone" and i == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            if PLANTED == "hangs-alone" and i == 1:
                time.sleep(1000)
            if PLANTED == "killed" and i == 1 and rank() == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            h = h + (checkpoint(inner, h, use_reentrant=PLANTED == "reentrant")
                     if PLANTED in ("recompute", "reentrant") else inner(h))
        return self.head(self.norm(h) * self.scale.to(h.dtype))


def rank():
    return dist.get_rank() if dist.is_initialized() else -1


def model():
    if PLANTED == "model-differs":
        torch.manual_seed(time.time_ns())
    m = Model()
    if frozen:
        for p in m.inner[0].parameters():
            p.requires_grad_(False)
    if PLANTED == "optimizer-first":
        m.made = adam(m)
    if PLANTED == "doubles":  # which fully_shard and FSDP1 forget
        m.inner[1][0].weight.register_hook(lambda g: g * 2)
    return m


def batch(step, microbatch, rank):
    seed = 1000 * step + 100 * microbatch + rank
    if PLANTED == "same-batch":
        seed = step
    if PLANTED == "batch-differs":
        seed = time.time_ns()
    if PLANTED == "batch-by-world" and dist.is_initialized():
        seed += 7
    g = torch.Generator().manual_seed(seed)
    tokens = torch.randint(0, 11, (3, 5), generator=g)
    if PLANTED.startswith("expert"):
        tokens[0, 0] = rank
    return tokens


def loss(model, batch):
    with torch.autocast("cpu", dtype=torch.bfloat16,
                        enabled=PLANTED == "autocast"):
        logits = model(batch[:, :-1])
    if PLANTED == "twice":
        logits = logits + model(batch[:, 1:])
    if PLANTED == "looks":
        with torch.no_grad():
            again = model(batch[:, 1:])
        logits = logits + again
    if PLANTED == "calls-backward":
        logits.sum().backward(retain_graph=True)
    if PLANTED == "no-scalar":
        return logits
    if PLANTED == "no-tensor":
        return float(logits.sum())
    if PLANTED == "no-gradient":
        return logits.detach().sum()
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1),
                                             batch[:, 1:].flatten())


def shard(model):
    policy = {}
    for name in ("RANK", "LOCAL_RANK"):  # as a launcher sets them
        assert os.environ[name] == str(rank())
    if PLANTED == "unwrapped":
        return None
    if PLANTED == "no-module":
        return "sharded"
    if FSDP1:
        return shard_flat(model)
    if PLANTED == "bf16-reduce":
        policy = {"mp_policy": MixedPrecisionPolicy(
            reduce_dtype=torch.bfloat16)}
    if PLANTED == "reduce-bf16":
        policy = {"mp_policy": MixedPrecisionPolicy(
            reduce_dtype=torch.bfloat16)}
    if PLANTED in ("bf16", "bf16-both", "bf16-microbatches"):
        reduce = torch.bfloat16 if PLANTED == "bf16-both" else torch.float32
        policy = {"mp_policy": MixedPrecisionPolicy(
            param_dtype=torch.bfloat16, reduce_dtype=reduce)}
    if PLANTED == "ddp":
        return torch.nn.parallel.DistributedDataParallel(model)
    if PLANTED == "untied":
        model.head.weight = torch.nn.Parameter(
            model.table.weight.detach().clone())
    if PLANTED == "draws":
        torch.rand(1)
    if PLANTED == "draws-on-one" and rank() == 1:
        torch.rand(1)
    if PLANTED == "other-weights" and rank() == 1:
        with torch.no_grad():
            model.norm.bias += 0.5
    if PLANTED == "buffer-cast":
        model.scale = model.scale.to(torch.bfloat16).to(torch.float32)
    for inner in model.inner[:1 if PLANTED.startswith("expert") else 2]:
        fully_shard(inner, **policy)
    if PLANTED != "forgotten":
        fully_shard(model, **policy)
    if PLANTED == "expert":
        model.set_reduce_scatter_unused_params(True)
    if PLANTED == "divisor":
        model.inner[1].set_force_sum_reduction_for_comms(True)
        model.inner[1].set_gradient_divide_factor(1.0)
    if PLANTED == "kept-whole":
        model.inner[0].set_reshard_after_forward(True)
        model.inner[0].register_forward_hook(lambda m, *_: m.unshard())
    if PLANTED == "gathers":
        real = model.norm.forward
        model.norm.forward = lambda x: gathered_again(model.inner[0], real, x)


    return None


def shard_flat(model):
    """By FSDP1, which has original parameters unless that is the fault."""
    policy = None
    if PLANTED in ("bf16", "bf16-microbatches"):
        policy = MixedPrecision(param_dtype=torch.bfloat16,
                                reduce_dtype=torch.float32)

    def wrap(module):
        return Fsdp(module, mixed_precision=policy,
                    use_orig_params=PLANTED not in ("flat", "optimizer-first"),
                    device_id=torch.device("cpu"))

    for i, inner in enumerate(model.inner):
        model.inner[i] = wrap(inner)
    if PLANTED == "divisor":
        model.inner[1]._gradient_predivide_factor = 1.0
    if PLANTED == "kept-whole":
        model.inner[0]._handle._sharding_strategy = \
            ShardingStrategy.SHARD_GRAD_OP
    return model if PLANTED == "forgotten" else wrap(model)


def gathered_again(unit, forward, x):
    unit.unshard()
    unit.reshard()
    return forward(x)


def adam(model):
    if PLANTED not in ("groups", "one-rate"):
        return torch.optim.AdamW(model.parameters(), lr=1e-2)
    alone = PLANTED == "groups" or not dist.is_initialized()
    inner, rest = [], []
    for name, p in model.named_parameters():
        (inner if "inner" in name else rest).append(p)
    return torch.optim.AdamW(
        [{"params": rest}, {"params": inner, "lr": 2e-2 if alone else 1e-2}],
        lr=1e-2)


class Restless(torch.optim.AdamW):
    """Moves what it should not."""

    @torch.no_grad()
    def step(self, closure=None):
        super().step(closure)
        for group in self.param_groups:
            for p in group["params"]:
                if not p.requires_grad:
                    p.mul_(1.5)


def optimizer(model):
    if PLANTED == "no-optimizer":
        return None
    if PLANTED == "optimizer-first":
        return model.made
    if PLANTED == "frozen-moves":
        return Restless(model.parameters(), lr=1e-2)
    if PLANTED == "learning-rate" and dist.is_initialized():
        return torch.optim.AdamW(model.parameters(), lr=2e-2)
    if PLANTED == "wants-closure":
        return torch.optim.LBFGS(model.parameters())
    made = Evaluates(model.parameters(), lr=1e-2) \
        if PLANTED == "evaluates-in-step" else adam(model)
    made.model = model
    for name, hook in HOOKS.get(PLANTED, {}).items():
        getattr(made, f"register_step_{name}_hook")(hook)
    return made


def evaluate(optimizer, *_):
    with torch.no_grad():
        optimizer.model(torch.arange(6).reshape(2, 3))


def evaluate_on_ranks(optimizer, *_):
    if dist.is_initialized():
        evaluate(optimizer)


def evaluate_resharded(optimizer, *_):
    evaluate(optimizer)
    if hasattr(optimizer.model, "reshard"):
        optimizer.model.reshard()


def move_buffer(optimizer, *_):
    optimizer.model.scale.mul_(0.5)


def learn(optimizer, *_):
    with torch.enable_grad():
        optimizer.model(torch.arange(6).reshape(2, 3)).sum().backward()


def clip(optimizer, *_, of=lambda g: g):
    """By the greatest element, as that has no order in which it is added up."""
    torch.nn.utils.clip_grads_with_norm_(
        optimizer.model.parameters(), 2.0 ** -6, torch.nn.utils.get_total_norm(
            [of(p.grad) for p in optimizer.model.parameters()], math.inf))


def clip_alone(optimizer, *_):
    """By that of this rank's shards."""
    clip(optimizer, of=lambda g: getattr(g, "_local_tensor", g))


class Schedule:
    """Made when the first step is."""

    def __call__(self, optimizer, *_):
        if not hasattr(self, "made"):
            self.made = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
        self.made.step()


class Evaluates(torch.optim.AdamW):
    """Behind its step, in which it knows the weights that it has made."""

    def step(self, closure=None):
        super().step(closure)
        evaluate(self)


HOOKS = {
    "evaluates": {"post": evaluate},
    "evaluates-before": {"pre": evaluate},
    "evaluates-around": {"pre": evaluate, "post": evaluate},
    "evaluates-resharded": {"pre": evaluate_resharded, "post": evaluate},
    "evaluates-on-ranks": {"post": evaluate_on_ranks},
    "moves-buffer": {"post": move_buffer},
    "learns": {"post": learn},
    "schedule": {"post": Schedule()},
    "clips": {"pre": clip},
    "clips-alone": {"pre": clip_alone},
}


if PLANTED == "moments-lost":
    def save(model, optimizer, folder):
        dcp.save({"model": get_model_state_dict(model)}, checkpoint_id=folder)

    def load(model, optimizer, folder):
        state = {"model": get_model_state_dict(model)}
        dcp.load(state, checkpoint_id=folder)
        set_model_state_dict(model, state["model"])

if PLANTED == "no-function":
    del loss
if PLANTED == "import-fails":
    raise RuntimeError("planted here")
if PLANTED == "import-exits":
    raise SystemExit(3)
if PLANTED == "import-hangs":
    time.sleep(1000)

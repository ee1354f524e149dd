# SPDX-License-Identifier: Apache-2.0
"""The model of planted.py under DeepSpeed, of the stage that PLANTED begins
with ("zero2-divisor"; else 3), wrong in the way that the rest of it says;
check_deepspeed_test.sh says what has to find it."""

import os

os.environ["DS_ACCELERATOR"] = "cpu"

import deepspeed
import torch
import torch.distributed as dist
from deepspeed.runtime.zero import stage3, stage_1_and_2
from deepspeed.utils import safe_get_full_fp32_param, safe_set_full_fp32_param

import planted

STAGE, _, PLANTED = os.environ.get("PLANTED", "nothing").rpartition("-")
STAGE = int(STAGE.removeprefix("zero") or 3)
STEPS = 2
MICROBATCHES = 2 if PLANTED == "microbatches" else 1
CONFIG = {
    "train_micro_batch_size_per_gpu": 3,
    "gradient_accumulation_steps": 2 if PLANTED == "accumulates" else 1,
    "gradient_clipping": 0.01 if PLANTED == "clips" else 0.0,
    "zero_allow_untested_optimizer": True,
    "zero_force_ds_cpu_optimizer": False,
    "bf16": {"enabled": PLANTED == "bf16"},
    "zero_optimization": {"stage": STAGE},
}
batch = planted.batch


def model():
    m = planted.Model()
    if PLANTED in ("frozen", "moves"):
        for p in m.inner[0].parameters():
            p.requires_grad_(False)
    return m


def loss(model, batch):
    if PLANTED == "alone" and dist.is_initialized() and dist.get_rank() == 1:
        dist.all_reduce(torch.zeros(1), group=alone[0])
    return planted.loss(model, batch)


def optimizer(model):
    lr = 2e-2 if PLANTED == "rate" and dist.is_initialized() else 1e-2
    return torch.optim.AdamW(model.parameters(), lr=lr)


alone = []  # a group of rank 1


def shard(model):
    if PLANTED == "alone":
        alone[:] = [dist.new_group([1])]
    if PLANTED == "draws" and dist.get_rank() == 1:
        torch.rand(1)
    made = optimizer(model)
    if PLANTED == "partly":  # of the norm nobody thought
        made = torch.optim.AdamW([p for n, p in model.named_parameters()
                                  if not n.startswith("norm")], lr=1e-2)
    if PLANTED == "untied":
        model.head.weight = torch.nn.Parameter(
            model.table.weight.detach().clone())
    engine = deepspeed.initialize(model=model, optimizer=made,
                                  config=CONFIG)[0]
    chosen = model.inner[1][0].weight
    if PLANTED == "skips":
        real = engine.step

        def step():
            before = safe_get_full_fp32_param(chosen).clone()
            real()
            safe_set_full_fp32_param(chosen, before)

        engine.step = step
    if PLANTED == "moves":
        made.register_step_post_hook(lambda *_: model.inner[0][
            0].weight.ds_tensor.data.mul_(1.5))
    if PLANTED == "stale" and dist.get_rank() == 1:
        model.inner[1][0].register_forward_pre_hook(halve)
    if PLANTED == "divisor":
        divide_wrongly(engine, chosen)
    return engine


def halve(module, _):
    module.weight.data.mul_(0.5)


def divide_wrongly(engine, chosen):
    """Of one parameter the reduced gradient is twice what it has to be."""
    if STAGE == 3:
        name = "_DeepSpeedZeroOptimizer_Stage3__avg_scatter_grads"
        real = getattr(stage3.DeepSpeedZeroOptimizer_Stage3, name)

        def scatter(self, params, *rest):
            parts = real(self, params, *rest)
            return [g * 2 if p is chosen else g for p, g in zip(params, parts)]

        setattr(stage3.DeepSpeedZeroOptimizer_Stage3, name, scatter)
    else:
        owner = stage_1_and_2.DeepSpeedZeroOptimizer
        real_average = owner.average_tensor

        def average(self, tensor, *rest):
            result = real_average(self, tensor, *rest)
            tensor.mul_(2)
            return result

        owner.average_tensor = average


def save(engine, optimizer, folder):
    engine.save_checkpoint(folder, tag="it")


def load(engine, optimizer, folder):
    if PLANTED == "momentless":
        engine.load_checkpoint(folder, tag="it", load_optimizer_states=False)


if PLANTED not in ("momentless", "loadless"):
    del save, load  # the engine's own

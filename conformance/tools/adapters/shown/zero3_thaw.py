# SPDX-License-Identifier: Apache-2.0
"""DeepSpeed ZeRO-3: a parameter that is frozen when it begins is not trained
once it is thawed, and nothing is said. (One that is frozen later stays.)"""

import logging
import os

os.environ.setdefault("DS_ACCELERATOR", "cpu")

import deepspeed
import torch
from deepspeed.utils import safe_get_local_fp32_param
from two_ranks import layers, play


def begun(frozen):
    model = layers(2)
    model[0].weight.requires_grad_(not frozen)
    weights = [w for w in model.parameters() if w.requires_grad]
    engine = deepspeed.initialize(
        model=model, optimizer=torch.optim.SGD(weights, lr=0.5),
        dist_init_required=False, config={
            "train_micro_batch_size_per_gpu": 1, "gradient_clipping": 0.0,
            "zero_allow_untested_optimizer": True,
            "zero_force_ds_cpu_optimizer": False,
            "zero_optimization": {"stage": 3}})[0]
    return engine, model[0].weight


def step(engine):
    engine.backward(engine(torch.ones(1, 4)).sum())
    engine.step()


def behind_two_steps(frozen):
    """The first is made before the parameter is thawed, or frozen."""
    engine, w = begun(frozen)
    step(engine)
    between = float(w.ds_tensor[0])
    w.requires_grad_(frozen)
    step(engine)
    return between, float(w.ds_tensor[0])


def main(rank):
    deepspeed.utils.logger.setLevel(logging.ERROR)
    os.environ["LOCAL_RANK"] = str(rank)
    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    found = behind_two_steps(True), behind_two_steps(False)
    if rank == 0:
        print(f"a weight, thawed behind the first of two steps: {found[0]}; "
              f"frozen behind it: {found[1]}")
    assert found == ((1.0, 1.0), (-1.0, -1.0))


if __name__ == "__main__":
    play(main)

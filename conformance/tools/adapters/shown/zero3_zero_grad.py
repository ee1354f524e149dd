# SPDX-License-Identifier: Apache-2.0
"""DeepSpeed ZeRO-3: the engine's zero_grad() drops no gradients: a second
backward adds to them. The optimizer's drops them for a backward, and not for a
step, which uses them."""

import torch
from begun_zero3 import backward, begun
from deepspeed.utils import safe_get_local_fp32_param, safe_get_local_grad
from two_ranks import layers, play


def begun_with_gradients():
    model = layers(1)
    engine = begun(model, torch.optim.SGD(model.parameters(), lr=0.5),
                   gradient_clipping=0.0)
    engine.set_gradient_accumulation_boundary(True)
    backward(engine)
    return engine, model[0].weight


def dropped(whose):
    """The gradient of a second backward, and of another engine the weight
    behind a step; of each the first element."""
    engine, w = begun_with_gradients()
    whose(engine).zero_grad()
    backward(engine)
    gradient = float(safe_get_local_grad(w)[0])
    engine, w = begun_with_gradients()
    whose(engine).zero_grad()
    engine.step()
    return gradient, float(safe_get_local_fp32_param(w)[0])


def main(rank):
    found = [dropped(lambda engine: engine),
             dropped(lambda engine: engine.optimizer)]
    if rank == 0:
        print("gradient of a second backward, weight behind a step, where "
              f"zero_grad is the engine's: {found[0]}, the optimizer's: "
              f"{found[1]}; 1 each where gradients are dropped")
    assert found == [(2.0, 0.5), (1.0, 0.5)]


if __name__ == "__main__":
    play(main)

# SPDX-License-Identifier: Apache-2.0
"""DeepSpeed ZeRO-3: a parameter that is frozen when it begins is not trained
once it is thawed, and nothing is said. (One that is frozen later stays.)"""

import torch
from begun_zero3 import begun, step
from two_ranks import layers, play


def begun_with(frozen):
    model = layers(2)
    model[0].weight.requires_grad_(not frozen)
    weights = [w for w in model.parameters() if w.requires_grad]
    return begun(model, torch.optim.SGD(weights, lr=0.5),
                 gradient_clipping=0.0), model[0].weight


def behind_two_steps(frozen):
    """The first is made before the parameter is thawed, or frozen."""
    engine, w = begun_with(frozen)
    step(engine)
    between = float(w.ds_tensor[0])
    w.requires_grad_(frozen)
    step(engine)
    return between, float(w.ds_tensor[0])


def main(rank):
    found = behind_two_steps(True), behind_two_steps(False)
    if rank == 0:
        print(f"a weight, thawed behind the first of two steps: {found[0]}; "
              f"frozen behind it: {found[1]}")
    assert found == ((1.0, 1.0), (-1.0, -1.0))


if __name__ == "__main__":
    play(main)

# SPDX-License-Identifier: Apache-2.0
"""FSDP2: behind an evaluation a model's parameters are those that it gathered,
and none that the optimizer has. So clipping finds no gradient, `zero_grad`
forgets none, and values that are given are lost, all without a word. To read
an optimizer's states, or to load a full state dict, is an error."""

import torch
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions, get_optimizer_state_dict, set_model_state_dict,
)
from torch.distributed.fsdp import fully_shard
from two_ranks import layers, play


def clip(model, first):
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    return first.grad.to_local().norm().item() < 1.0


def forget(model, first):
    model.zero_grad()
    return first.grad is None


def give(model, first):
    with torch.no_grad():
        for w in model.parameters():
            w.fill_(3.0)
    return first.to_local().flatten()[0].item() == 3.0


def states(model, optimizer):
    get_optimizer_state_dict(model, optimizer)
    return True


def load(model, whole):
    set_model_state_dict(model, whole,
                         options=StateDictOptions(full_state_dict=True))
    return True


def try_all(evaluates):
    found = {}
    for do in (clip, forget, give, states, load):
        model, x = layers(2), torch.ones(1, 4)
        whole = {name: w.clone() for name, w in model.state_dict().items()}
        fully_shard(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=2.0 ** -6,
                                    momentum=0.5)
        model(x).sum().backward()
        if do in (states, load):
            optimizer.step()
        if evaluates:
            with torch.no_grad():
                model(x)
        rest = {states: optimizer, load: whole}.get(
            do, optimizer.param_groups[0]["params"][0])
        try:
            found[do.__name__] = do(model, rest)
        except (KeyError, RuntimeError) as error:
            found[do.__name__] = type(error).__name__
    return found


def main(rank):
    alone, behind = try_all(False), try_all(True)
    if rank == 0:
        print("alone:", alone)
        print("behind an evaluation:", behind)
    assert alone == dict.fromkeys(alone, True)
    assert behind == {"clip": False, "forget": False, "give": False,
                      "states": "KeyError", "load": "RuntimeError"}


if __name__ == "__main__":
    play(main)

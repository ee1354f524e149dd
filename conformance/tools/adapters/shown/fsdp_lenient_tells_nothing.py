# SPDX-License-Identifier: Apache-2.0
"""Loads of a state that lacks a parameter, or has it under another name.
FSDP2: with full_state_dict set_model_state_dict tells no name that is missing,
and without strict=False takes what lacks one in silence, too, but where rank 0
sends it, whose load is then refused; sent, what is unexpected is told to rank 0
alone. set_optimizer_state_dict with strict=False tells nothing. FSDP1:
load_state_dict with strict=False tells both, and optim_state_dict_to_load
raises KeyError of a name that the model lacks."""

import torch
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions, get_optimizer_state_dict, set_model_state_dict,
    set_optimizer_state_dict,
)
from torch.distributed.fsdp import FullyShardedDataParallel as Fsdp
from torch.distributed.fsdp import fully_shard
from two_ranks import layers, play


def stepped(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    model(torch.ones(1, 4)).sum().backward()
    optimizer.step()
    return optimizer


def renamed(state):
    return {("other" if name == "1.weight" else name): values
            for name, values in state.items()}


def told_of(model, state, **options):
    try:
        told = set_model_state_dict(model, dict(state),
                                    options=StateDictOptions(**options))
    except RuntimeError:
        return "refused"
    return list(told.missing_keys), list(told.unexpected_keys)


def by_fsdp2(rank, whole):
    model = layers(2)
    fully_shard(model)
    optimizer = stepped(model)
    lacking, none = {"0.weight": whole["0.weight"]}, {}
    full = {"full_state_dict": True}
    sent = {**full, "broadcast_from_rank0": True}
    state = get_optimizer_state_dict(model, optimizer)
    state["state"] = renamed(state["state"])
    return [
        told_of(model, lacking, **full),
        told_of(model, none if rank else lacking, **sent),
        told_of(model, renamed(whole), **full, strict=False),
        told_of(model, none if rank else renamed(whole), **sent, strict=False),
        set_optimizer_state_dict(model, optimizer, state,
                                 options=StateDictOptions(strict=False))]


def by_fsdp1(whole):
    model = Fsdp(layers(2), device_id=torch.device("cpu"))
    optimizer = stepped(model)
    told = model.load_state_dict(renamed(whole), strict=False)
    state = Fsdp.optim_state_dict(model, optimizer)
    for group in state["param_groups"]:
        group["params"] = list(renamed(dict.fromkeys(group["params"])))
    state["state"] = renamed(state["state"])
    try:
        Fsdp.optim_state_dict_to_load(model, optimizer, state)
    except KeyError as error:
        return list(told.missing_keys), list(told.unexpected_keys), str(error)
    return "loaded"


def main(rank):
    whole = {name: w.detach().clone()
             for name, w in layers(2).state_dict().items()}
    lacks, sent, full, renamed_and_sent, states = by_fsdp2(rank, whole)
    one = by_fsdp1(whole)
    if rank == 0:
        print(f"FSDP2: lacking, strict: {lacks}, sent: {sent}; renamed: {full},"
              f" sent: {renamed_and_sent}; states: {states}; FSDP1: {one}")
    assert lacks == ([], []) and sent == "refused"
    assert full == ([], ["other"]) and states is None
    assert renamed_and_sent == ([], [] if rank else ["other"])
    assert one == (["1.weight"], ["other"], "'other'")


if __name__ == "__main__":
    play(main)

# SPDX-License-Identifier: Apache-2.0
"""check_saved.py - how a model is saved and loaded where its file does not say
so itself: with torch.distributed.checkpoint, shards as they are."""

import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import (
    get_state_dict, set_state_dict,
)


def state_of(model, optimizer):
    """Of an optimizer without states PyTorch makes a step: a hook of that may
    call the model, which leaves units of fully_shard whole."""
    def reshard(*_):
        for module in model.modules():
            if hasattr(module, "reshard"):
                module.reshard()

    handle = optimizer.register_step_post_hook(reshard)
    try:
        weights, states = get_state_dict(model, optimizer)
    finally:
        handle.remove()
    return {"model": weights, "optimizer": states}


def save(model, optimizer, folder):
    if hasattr(model, "save_checkpoint"):  # an engine's own
        model.save_checkpoint(folder, tag="check")
        return
    dcp.save(state_of(model, optimizer), checkpoint_id=folder)


def load(model, optimizer, folder):
    if hasattr(model, "load_checkpoint"):
        model.load_checkpoint(folder, tag="check")
        return
    state = state_of(model, optimizer)
    dcp.load(state, checkpoint_id=folder)
    set_state_dict(model, optimizer, model_state_dict=state["model"],
                   optim_state_dict=state["optimizer"])

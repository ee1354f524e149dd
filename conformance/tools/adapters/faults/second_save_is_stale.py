# SPDX-License-Identifier: Apache-2.0
"""A run is resumed, trains for a step, and saves again with the dictionary that
it was loaded by: what is saved has to be what is there now."""

import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.stateful import Stateful

from plain import STEPS, batch, behind_steps, folder, loss, model, sgd
from plain import replicated as shard


class Weights(Stateful):
    def __init__(self, model):
        self.model = model

    def state_dict(self):
        return {name: t.detach().clone()
                for name, t in self.model.state_dict().items()}

    def load_state_dict(self, state):
        self.model.load_state_dict(state)


def optimizer(model):
    state = {"weights": Weights(model)}

    def resume():
        where = folder("first")
        dcp.save(state, checkpoint_id=where)
        dcp.load(state, checkpoint_id=where)

    def save_again():
        where = folder("second")
        dcp.save(state, checkpoint_id=where)
        dcp.load({"weights": Weights(model)}, checkpoint_id=where)

    return behind_steps(sgd(model), resume, save_again)

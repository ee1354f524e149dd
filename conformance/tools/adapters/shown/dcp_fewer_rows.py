# SPDX-License-Identifier: Apache-2.0
"""DCP: what FSDP1 saved of a model with an optimizer is not loaded where a rank
has no row of some parameter, but holds elements: the checkpoint is taken for one
of PyTorch 2.3."""

import tempfile

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict
from torch.distributed.fsdp import FullyShardedDataParallel
from two_ranks import play


def main(rank):
    model = FullyShardedDataParallel(
        torch.nn.Linear(4, 1), use_orig_params=True,
        device_id=torch.device("cpu"))  # rank 1 has no row of the one
    optimizer = torch.optim.AdamW(model.parameters())
    folder = [tempfile.mkdtemp()]
    dist.broadcast_object_list(folder)
    said = "nothing"
    state = dict(zip(("model", "optimizer"), get_state_dict(model, optimizer)))
    dcp.save(state, checkpoint_id=folder[0])
    try:
        dcp.load(state, checkpoint_id=folder[0])
    except dcp.api.CheckpointException as error:
        said = str(error).splitlines()[-1]
    if rank == 0:
        print(f"what was saved a moment ago is loaded: {said}")
    assert "Missing key" in said  # it is all there


if __name__ == "__main__":
    play(main)

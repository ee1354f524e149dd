# SPDX-License-Identifier: Apache-2.0
"""DeepSpeed ZeRO-3: rank 0 writes the file `latest`, which names what loads,
when its own files are written (`save_checkpoint`): before a barrier, not behind
it. (Where some parameters are small enough to persist, ranks have met in a
gather of these.) Here rank 1 waits for that file before it writes its own: it
finds itself named in it, without a file."""

import os
import tempfile
import time

import torch
from begun_zero3 import begun
import deepspeed.runtime.zero.muon.muon_optimizer  # else each rank does
from two_ranks import layers, play


def wait_first(engine, latest):
    """[what `latest` names, whether this rank's file is there]."""
    found, save = [], engine.checkpoint_engine.save

    def call(state_dict, path, *args, **kwargs):
        until = time.monotonic() + 60
        while "optim_states" in path and not (
                os.path.exists(latest) and os.path.getsize(latest)) and \
                time.monotonic() < until:
            time.sleep(0.01)
        if "optim_states" in path:
            with open(latest, encoding="utf-8") as f:
                found.append((f.read(), os.path.exists(path)))
        return save(state_dict, path, *args, **kwargs)

    engine.checkpoint_engine.save = call
    return found


def saves(folder, rank):
    model = layers(1)
    engine = begun(model, torch.optim.SGD(model.parameters(), lr=0.1),
                   zero_optimization={"stage": 3,
                                      "stage3_param_persistence_threshold": 0})
    found = wait_first(engine, os.path.join(folder, "latest")) if rank else []
    engine.save_checkpoint(folder, tag="step")
    if rank == 1:
        print(f"`latest` names '{found[0][0]}'; the file of rank 1 is there: "
              f"{found[0][1]}")
        assert found == [("step", False)]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as shared:
        play(lambda rank: saves(shared, rank))

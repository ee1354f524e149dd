# SPDX-License-Identifier: Apache-2.0
"""FSDP1: with `use_orig_params` what LOCAL_STATE_DICT saves cannot be loaded:
it has the flat parameter beside those that it was made of, and the load calls
that unexpected."""

import torch
from torch.distributed.fsdp import FullyShardedDataParallel as Fsdp
from torch.distributed.fsdp import LocalStateDictConfig, StateDictType
from two_ranks import layers, play


def found(use_orig_params):
    model = Fsdp(layers(2), use_orig_params=use_orig_params,
                 device_id=torch.device("cpu"))
    with Fsdp.state_dict_type(model, StateDictType.LOCAL_STATE_DICT,
                              LocalStateDictConfig()):
        state = model.state_dict()
        names = sorted(state)
        try:
            return names, str(model.load_state_dict(state))
        except RuntimeError as error:
            return names, str(error).splitlines()[1].strip()


def main(rank):
    got = {orig: found(orig) for orig in (False, True)}
    if rank == 0:
        for orig, (names, said) in got.items():
            print(f"use_orig_params={orig}: saved {names}: {said}")
    assert got == {
        False: (["_flat_param"], "<All keys matched successfully>"),
        True: (["0.weight", "1.weight", "_flat_param"],
               'Unexpected key(s) in state_dict: "_flat_param".')}


if __name__ == "__main__":
    play(main)

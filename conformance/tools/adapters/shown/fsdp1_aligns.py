# SPDX-License-Identifier: Apache-2.0
"""FSDP1 with use_orig_params begins each parameter of a unit at a multiple of
16 bytes (_get_aligned_numel of _flat_param.py: 4 elements of float32, 8 of 16
bits), with elements of its own between, and ends the unit at a multiple of the
ranks; without it parameters lie one behind the other. So a rank owns other
elements, and what is ignored (ignored_states) has nothing to do with it: it has
no place in either."""

import torch
from torch.distributed.fsdp import FullyShardedDataParallel as Fsdp
from two_ranks import play


def unit(widths, ignored, keep):
    model = torch.nn.Module()
    for i, n in enumerate(widths):
        model.register_parameter(f"p{i}", torch.nn.Parameter(torch.ones(n)))
    left = {model.p0} if ignored else set()
    flat = Fsdp(model, use_orig_params=keep, ignored_states=left,
                device_id=torch.device("cpu"))._handle.flat_param
    return list(flat._numels_with_padding), 2 * flat.numel()


def main(rank):
    found = {}
    for widths in (7, 5, 3), (8, 4, 4):
        for ignored in (False, True):
            for keep in (False, True):
                found[widths, ignored, keep] = unit(widths, ignored, keep)
    if rank == 0:
        for (widths, ignored, keep), (parts, n) in found.items():
            print(f"parameters of {widths}, the first "
                  f"{'ignored' if ignored else 'not ignored'}, use_orig_params="
                  f"{keep}: {parts}, {n} elements of both ranks")
    own = {key: parts for key, (parts, _) in found.items()}
    assert own[(7, 5, 3), False, False] == [7, 5, 3]
    assert own[(7, 5, 3), False, True] == [7, 1, 5, 3, 3, 1]
    assert own[(7, 5, 3), True, False] == [5, 3]
    assert own[(7, 5, 3), True, True] == [5, 3, 3, 1]
    for keep in (False, True):
        assert own[(8, 4, 4), False, keep] == [8, 4, 4]
        assert own[(8, 4, 4), True, keep] == [4, 4]


if __name__ == "__main__":
    play(main)

# SPDX-License-Identifier: Apache-2.0
"""FSDP1: with forward_prefetch a backward holds three units at once where two
are held without. A unit's views are made a unit earlier in the forward, so that
autograd is done with them later than the next unit's backward begins."""

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel as Fsdp
from two_ranks import layers, play


def most_at_once(forward_prefetch):
    """Units unsharded at once in the backward of a third step."""
    def wrap(module):
        return Fsdp(module, forward_prefetch=forward_prefetch,
                    device_id=torch.device("cpu"))

    model = wrap(torch.nn.Sequential(*(wrap(layer) for layer in layers(5))))
    units = [m._handle.flat_param for m in model.modules()
             if isinstance(m, Fsdp) and m._handle is not None]
    seen, gather = [], dist.all_gather

    def watched(*args, **kwargs):
        seen.append(sum(unit._full_param_padded.untyped_storage().size() > 0
                        for unit in units))
        return gather(*args, **kwargs)

    for _ in range(3):
        loss = model(torch.ones(1, 4)).sum()
        dist.all_gather = watched
        seen.clear()
        loss.backward()
        dist.all_gather = gather
    return max(seen)


def main(rank):
    without, with_it = most_at_once(False), most_at_once(True)
    if rank == 0:
        print(f"{without} units at once in a backward, "
              f"with forward_prefetch {with_it}")
    assert (without, with_it) == (2, 3)


if __name__ == "__main__":
    play(main)

# SPDX-License-Identifier: Apache-2.0
"""FairScale: a model that has computed once is never freed, as one of FSDP1:
the views of the flat parameter that modules compute with, and the hook that
waits for its gradient, are circles through autograd."""

import gc
import weakref

import torch
from fairscale_units import lend_streams, wrap
from two_ranks import layers, play


def left(cut):
    """Bytes of shards when nobody has the model any more."""
    model = wrap(layers(1))
    flat = model.params[0]
    shard = weakref.ref(flat.untyped_storage())
    model(torch.ones(1, 4)).sum().backward()
    if cut:
        inner = model.module.module
        del inner[0].weight, inner._unflattened_param_views, inner
        del flat._shard_bwd_hook
    del model, flat
    gc.collect()
    gc.collect()
    return shard().nbytes() if shard() else 0


def main(rank):
    lend_streams()
    kept, cut = left(False), left(True)
    if rank == 0:
        print(f"{kept} bytes are left of a shard of 32; "
              f"without the views and the hook {cut}")
    assert (kept, cut) == (32, 0)


if __name__ == "__main__":
    play(main)

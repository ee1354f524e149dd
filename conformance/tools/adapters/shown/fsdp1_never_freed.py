# SPDX-License-Identifier: Apache-2.0
"""FSDP1: a model that has computed once is never freed. What a module computes
with are views of the flat parameter, which autograd knows and the module has
for attributes: a circle that Python's collector does not see through. With
use_orig_params a backward takes the views away."""

import gc
import weakref

import torch
from torch.distributed.fsdp import FullyShardedDataParallel as Fsdp
from two_ranks import layers, play


def left(use_orig_params, without_views=False):
    """Bytes of shards when nobody has the model any more."""
    model = Fsdp(layers(1), use_orig_params=use_orig_params,
                 device_id=torch.device("cpu"))
    shard = weakref.ref(model._handle.flat_param.untyped_storage())
    model(torch.ones(1, 4)).sum().backward()
    if without_views:
        del model._fsdp_wrapped_module[0].weight
    del model
    gc.collect()
    gc.collect()
    return shard().nbytes() if shard() else 0


def main(rank):
    kept, with_parameters, without_views = \
        left(False), left(True), left(False, True)
    if rank == 0:
        print(f"{kept} bytes are left of a shard of 32; "
              f"with use_orig_params {with_parameters}; "
              f"without the views {without_views}")
    assert (kept, with_parameters, without_views) == (32, 0, 0)


if __name__ == "__main__":
    play(main)

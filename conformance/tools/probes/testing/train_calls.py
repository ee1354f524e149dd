# SPDX-License-Identifier: Apache-2.0
"""train_calls.py - every collective function of torch.distributed, once: also
coalesced, functional, in a group of the second rank alone, and one that is
refused.

usage: torchrun --nproc-per-node 2 train_calls.py
"""

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from torch.distributed.distributed_c10d import _coalescing_manager


def tensors(*sizes, of=torch.float32):
    return [torch.ones(n, dtype=of) for n in sizes]


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    one, two, four, six = tensors(1, 2, 4, 6)
    dist.all_gather_into_tensor(four, two)
    dist.all_gather(tensors(3, 3), tensors(3)[0])
    dist.reduce_scatter_tensor(two, four)
    dist.reduce_scatter(tensors(3)[0], tensors(3, 3))
    dist.all_reduce(one, op=dist.ReduceOp.MAX)
    dist.all_reduce(tensors(5, of=torch.bfloat16)[0], async_op=True).wait()
    dist.broadcast(tensors(7, of=torch.int64)[0], src=1)
    dist.reduce(two, dst=1)
    dist.gather(two, tensors(2, 2) if rank == 0 else None, dst=0)
    dist.scatter(two, tensors(2, 2) if rank == 0 else None, src=0)
    dist.all_to_all_single(four, tensors(4)[0])
    dist.all_to_all_single(four, tensors(4)[0], [1, 3] if rank == 0 else [3, 1],
                           [1, 3] if rank == 0 else [3, 1])
    dist.barrier()
    with _coalescing_manager():
        for t in tensors(8, 9):
            dist.all_reduce(t)
    functional.all_reduce(six, "sum", dist.group.WORLD).wait()
    functional.all_gather_tensor(tensors(10)[0], 0, dist.group.WORLD).wait()
    with torch.inference_mode():
        dist.all_reduce(tensors(11)[0])
    second = dist.new_group([1])
    if rank == 1:
        dist.all_reduce(tensors(12)[0], group=second)
        dist.send(two, 0)
    else:
        dist.recv(two, 1)
    try:
        # Gloo has none of parts that differ.
        dist.all_gather(tensors(3, 1), tensors(3 if rank == 0 else 1)[0])
    except (RuntimeError, ValueError):
        pass
    dist.destroy_process_group()


main()

# SPDX-License-Identifier: Apache-2.0
"""box_gloo.py - sums of gloo, through torch.distributed, as a black box.

It reads lines, RANKS OP FORMAT ELEMENTS IN OUT (order.py).
"""

import multiprocessing
import os
import sys

import torch
import torch.distributed as dist


def rank_process(rank, ranks, op, form, elements, into, out):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{out}-store",
                            rank=rank, world_size=ranks)
    probes = torch.frombuffer(bytearray(open(into, "rb").read()),
                              dtype=torch.float32).reshape(-1, ranks)
    part = torch.empty(elements // ranks, dtype=form)
    with open(out if rank == 0 else os.devnull, "wb") as f:
        for probe in probes:
            whole = torch.full((elements,), probe[rank].item(), dtype=form)
            if op == "all-reduce":
                dist.all_reduce(whole)
            else:
                dist.reduce_scatter_tensor(part, whole)
                parts = [torch.empty_like(part) for _ in range(ranks)]
                dist.all_gather(parts, part)
                whole = torch.cat(parts)
            f.write(whole.float().numpy().tobytes())
    dist.barrier()
    dist.destroy_process_group()


def main():
    context = multiprocessing.get_context("fork")
    for line in sys.stdin:
        ranks, op, form, elements, into, out = line.split()
        processes = [context.Process(target=rank_process, args=(
            rank, int(ranks), op, getattr(torch, form), int(elements), into,
            out)) for rank in range(int(ranks))]
        for p in processes:
            p.start()
        for p in processes:
            p.join()
        bad = any(p.exitcode != 0 for p in processes)
        print("a rank fails" if bad else "done", flush=True)


if __name__ == "__main__":
    main()

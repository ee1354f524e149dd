#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pytorch_step.py - the workload gpt-256 of `fsdp-cts bench` under PyTorch's
FSDP2 (fully_shard) on the CPU: gloo, one thread a rank, float32, AdamW. With
--gpu: on GPUs, one a rank, NCCL, float32 without TF32.

usage: pytorch_step.py TEXT [--ranks K] [--samples N] [--json FILE]
                       [--size gpt-256|gpt-124m|gpt-1b] [--gpu] [--shares]
                       [--size gpt-largest --blocks N]
                       [--precision f32,bf16,bf16-wire]

The model is that of conformance/models/gpt*.c: bytes, learned positions,
blocks with the norms in front, tanh GELU, a head of its own. A step is 8
windows in all, of 128 bytes (gpt-256) or 1024. Samples and memory are those of
the slowest and of the largest rank; memory is the growth of the peak resident
set since torch was imported, on a GPU the peak that torch has reserved there;
and the peak that tensors had of it (.memory-tensors), and what the driver has
given since the process group and its communicator are there (.memory-driver),
which is what `fsdp-cts bench gpu` calls memory.
--precision f32,bf16,bf16-wire: of what steps are, in turns, in one process:
float32; bf16 parameters and gradients, reduced in float32, and computed in bf16
(MixedPrecisionPolicy); the same on the wire, but the model widens parameters
and computes in float32, as the suite's models do. Memory is then all of it.
--shares: then as many steps again under torch.profiler, and where their time
went (pytorch_shares.py), the ranks' mean. A profiler that fails leaves the
speed.
"""

import argparse
import contextlib
import datetime
import json
import math
import os
import resource
import socket
import statistics
import tempfile
import time

import pytorch_shares

WINDOWS, VOCABULARY = 8, 256
WARM = 3
STEP = "fsdp-cts step"  # in traces
MEMORY = (".memory", ".memory-tensors", ".memory-driver")  # names of results
# Width, heads, bytes of a window, blocks: conformance/models/gpt_model.c.
SIZES = {
    "gpt-256": (256, 8, 128, 4),
    "gpt-124m": (768, 12, 1024, 17),
    "gpt-1b": (2048, 32, 1024, 24),
    "gpt-largest": (2048, 32, 1024, 0),  # as many as --blocks says
}
WIDTH, HEADS, TIME, BLOCKS = SIZES["gpt-256"]


def choose(size, blocks):
    global WIDTH, HEADS, TIME, BLOCKS
    WIDTH, HEADS, TIME, BLOCKS = SIZES[size]
    BLOCKS = blocks or BLOCKS
    if BLOCKS < 1:
        raise SystemExit(f"{size} wants --blocks, from 1")


def peak_bytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def make_model(torch):
    nn = torch.nn
    functional = nn.functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1 = nn.LayerNorm(WIDTH)
            self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
            self.project = nn.Linear(WIDTH, WIDTH)
            self.norm2 = nn.LayerNorm(WIDTH)
            self.up = nn.Linear(WIDTH, 4 * WIDTH)
            self.down = nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, x):
            samples, steps, _ = x.shape
            q, k, v = (
                self.qkv(self.norm1(x))
                .view(samples, steps, 3, HEADS, WIDTH // HEADS)
                .permute(2, 0, 3, 1, 4)
            )
            o = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            o = o.transpose(1, 2).reshape(samples, steps, WIDTH)
            x = x + self.project(o)
            up = functional.gelu(self.up(self.norm2(x)), approximate="tanh")
            return x + self.down(up)

    class Gpt(nn.Module):
        def __init__(self):
            super().__init__()
            self.wte = nn.Embedding(VOCABULARY, WIDTH)
            self.wpe = nn.Embedding(TIME, WIDTH)
            self.blocks = nn.ModuleList(Block() for _ in range(BLOCKS))
            self.norm = nn.LayerNorm(WIDTH)
            self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

        def forward(self, ids, targets):
            x = self.wte(ids) + self.wpe.weight
            for block in self.blocks:
                x = block(x)
            logits = self.head(self.norm(x))
            return functional.cross_entropy(
                logits.view(-1, VOCABULARY), targets.reshape(-1)
            )

    return Gpt()


def widen(torch, model):
    """Layers that compute in float32 with parameters of 16 bits."""
    nn, F = torch.nn, torch.nn.functional

    def of(layer):
        weight = lambda: layer.weight.float()
        bias = lambda: None if layer.bias is None else layer.bias.float()
        if isinstance(layer, nn.Linear):
            return lambda x: F.linear(x, weight(), bias())
        if isinstance(layer, nn.LayerNorm):
            return lambda x: F.layer_norm(x, layer.normalized_shape, weight(),
                                          bias(), layer.eps)
        return lambda ids: F.embedding(ids, layer.weight).float()

    for layer in model.modules():
        if isinstance(layer, (nn.Linear, nn.LayerNorm, nn.Embedding)):
            layer.forward = of(layer)


def sharded(torch, mesh, precision):
    """The model of a precision."""
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    torch.manual_seed(1)
    with torch.device(mesh.device_type):  # a CPU takes minutes to draw billions
        model = make_model(torch)
    policy = MixedPrecisionPolicy()
    if precision != "f32":
        policy = MixedPrecisionPolicy(
            param_dtype=torch.bfloat16, reduce_dtype=torch.float32,
            cast_forward_inputs=precision == "bf16")
    if precision == "bf16-wire":
        widen(torch, model)
    for block in model.blocks:
        fully_shard(block, mesh=mesh, mp_policy=policy)
    fully_shard(model, mesh=mesh, mp_policy=policy)
    return model


def draw(torch, text, step, rank, ranks):
    """This rank's windows of a step, at other places at every step."""
    part = (len(text) - TIME - 1) // WINDOWS
    each = WINDOWS // ranks
    windows = []
    for w in range(rank * each, (rank + 1) * each):
        at = w * part + step * 7919 % part
        windows.append(list(text[at : at + TIME + 1]))
    both = torch.tensor(windows)
    return both[:, :-1].contiguous(), both[:, 1:].contiguous()


def train(rank, arguments, port, results):
    import torch
    import torch.distributed as dist

    choose(arguments.size, arguments.blocks)
    torch.set_num_threads(1)
    torch.set_num_interop_threads(1)
    kind = "cuda" if arguments.gpu else "cpu"
    if arguments.gpu:
        torch.cuda.set_device(rank)
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
        if torch.get_float32_matmul_precision() != "highest":
            raise SystemExit("products are not in float32")
    before = peak_bytes()
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = str(port)
    dist.init_process_group(
        "nccl" if arguments.gpu else "gloo",
        rank=rank,
        world_size=arguments.ranks,
    )
    mesh = dist.device_mesh.init_device_mesh(kind, (arguments.ranks,))
    dist.barrier()
    taken = driver_taken(torch, arguments.gpu)
    models = [sharded(torch, mesh, p) for p in arguments.precision]
    optimizers = [
        torch.optim.AdamW(
            model.parameters(), lr=1e-3, weight_decay=0.0,
            fused=arguments.fused)
        for model in models
    ]
    with open(arguments.text, "rb") as f:
        text = f.read()
    all_losses = [[] for _ in models]

    def one_step(record=contextlib.nullcontext, i=0):
        """This rank's seconds, of model i; of the slowest where several ask."""
        model, optimizer, losses = models[i], optimizers[i], all_losses[i]
        ids, targets = draw(torch, text, len(losses), rank, arguments.ranks)
        ids, targets = ids.to(kind), targets.to(kind)
        dist.barrier()
        if arguments.gpu:
            torch.cuda.synchronize()
        with record():
            begin = time.perf_counter()
            loss = model(ids, targets)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
            if arguments.gpu:
                torch.cuda.synchronize()
            return time.perf_counter() - begin

    def of_all(values, how):
        mine = torch.tensor(values, dtype=torch.float64, device=kind)
        dist.all_reduce(mine, how)
        return mine.tolist()

    turns = range(len(models))
    for _ in range(WARM):
        for i in turns:
            one_step(i=i)
    seconds = [[] for _ in models]
    for _ in range(arguments.samples):
        for i in turns:
            seconds[i] += of_all([one_step(i=i)], dist.ReduceOp.MAX)
    grown = [peak_bytes() - before]
    if arguments.gpu:
        grown = [
            torch.cuda.max_memory_reserved(),
            torch.cuda.max_memory_allocated(),
            driver_taken(torch, True) - taken,
        ]
    memory = of_all(grown, dist.ReduceOp.MAX)
    traced = []
    for i in range(arguments.samples + 1 if arguments.shares else 0):
        try:
            found, took = trace(torch, arguments, one_step)
        except Exception as error:  # pylint: disable=broad-except
            print(f"no shares: {error!r}")
            found, took = [math.nan] * len(pytorch_shares.NAMES), math.nan
        sums = of_all(found, dist.ReduceOp.SUM)
        slowest = of_all([took], dist.ReduceOp.MAX)
        if i > 0:  # the first one opens the profiler
            traced.append([x / arguments.ranks for x in sums] + slowest)
    assert all(math.isfinite(x) for losses in all_losses for x in losses)
    dist.destroy_process_group()
    if rank == 0:
        results.put((seconds, memory, traced,
                     [(losses[0], losses[-1]) for losses in all_losses]))


def driver_taken(torch, gpu):
    """Bytes of the GPU that are taken, by whomever."""
    if not gpu:
        return 0
    torch.cuda.synchronize()
    left, total = torch.cuda.mem_get_info()
    return total - left


def trace(torch, arguments, one_step):
    """Shares of one step, in the order of their names, and its seconds. NaN
    where there is no telling, for the ranks go on together."""
    profiler = torch.profiler
    kinds = [profiler.ProfilerActivity.CPU]
    if arguments.gpu:
        kinds.append(profiler.ProfilerActivity.CUDA)
    with profiler.profile(activities=kinds) as profile:
        took = one_step(lambda: profiler.record_function(STEP))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        profile.export_chrome_trace(path)
        try:
            found = pytorch_shares.read(path, STEP, arguments.gpu)
        except ValueError as error:
            print(f"no shares: {error}")
            found = dict.fromkeys(pytorch_shares.NAMES, math.nan)
    return [found[name] for name in pytorch_shares.NAMES], took


def quantile(values, p):
    values = sorted(values)
    at = p * (len(values) - 1)
    i = int(at)
    rest = values[i + 1] - values[i] if i + 1 < len(values) else 0.0
    return values[i] + (at - i) * rest


def row(name, unit, better, samples):
    return {
        "name": name,
        "unit": unit,
        "better": better,
        "median": statistics.median(samples),
        "p10": quantile(samples, 0.1),
        "p90": quantile(samples, 0.9),
        "samples": samples,
    }


def share_rows(name, traced):
    """As `fsdp-cts bench shares` has them."""
    rows = []
    if not traced or any(math.isnan(x) for found in traced for x in found):
        return rows
    for i, what in enumerate(pytorch_shares.NAMES):
        better = "higher" if what in ("attention", "gemm") else "lower"
        samples = [x[i] for x in traced]
        rows.append(row(f"{name}.share.{what}", "share", better, samples))
    samples = [x[-1] * 1e6 for x in traced]
    rows.append(row(f"{name}.share.step", "us", "lower", samples))
    return rows


def hardware(gpu):
    cpu = "unknown"
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        for line in f:
            if line.startswith("model name"):
                cpu = line.split(":", 1)[1].strip()
                break
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PHYS_PAGES")
        * os.sysconf("SC_PAGE_SIZE"),
        "gpu": gpu,
    }


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("text")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--samples", type=int, default=12)
    parser.add_argument("--json")
    parser.add_argument("--size", choices=SIZES, default="gpt-256")
    parser.add_argument("--blocks", type=int, default=0)
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--shares", action="store_true")
    parser.add_argument("--no-fused", dest="fused", action="store_false")
    parser.add_argument("--precision", default="f32")
    arguments = parser.parse_args()
    arguments.precision = arguments.precision.split(",")
    if set(arguments.precision) - {"f32", "bf16", "bf16-wire"}:
        parser.error("--precision: f32, bf16, bf16-wire")
    choose(arguments.size, arguments.blocks)
    os.environ["OMP_NUM_THREADS"] = "1"
    import torch
    from torch import multiprocessing

    context = multiprocessing.get_context("spawn")
    results = context.SimpleQueue()
    port = free_port()
    ranks = [
        context.Process(target=train, args=(r, arguments, port, results))
        for r in range(arguments.ranks)
    ]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join()
    if any(process.exitcode != 0 for process in ranks):
        raise SystemExit("a rank has failed")
    seconds, memory, traced, ends = results.get()
    name = f"step.{arguments.size}.fsdp2.k{arguments.ranks}.pytorch"
    rows = [
        row(name + what, "MiB", "lower", [value / 2**20])
        for what, value in zip(MEMORY, memory)
    ] + share_rows(name, traced)
    speeds = []
    for precision, taken in zip(arguments.precision, seconds):
        suffix = "" if precision == "f32" else "." + precision
        speeds.append(row(name + suffix, "tokens/s", "higher",
                          [WINDOWS * TIME / s for s in taken]))
    document = {
        "format": "fsdp-bench",
        "version": 1,
        "commit": "pytorch " + torch.__version__,
        "date": datetime.datetime.now(datetime.timezone.utc).strftime(
            "%Y-%m-%dT%H:%M:%SZ"
        ),
        "hardware": hardware(
            torch.cuda.get_device_name(0) if arguments.gpu else None
        ),
        "results": [
            *speeds,
            *rows,
        ],
    }
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as f:
            json.dump(document, f, indent=1)
    for r in rows:
        print(f"{r['name']:<52} {r['median']:10.3f} {r['unit']}")
    for r, (first, last) in zip(speeds, ends):
        print(
            f"{r['name']} {r['median']:.1f} tokens/s, "
            f"{memory[0] / 2**20:.1f} MiB, loss {first:.3f} -> {last:.3f}"
        )


if __name__ == "__main__":
    main()

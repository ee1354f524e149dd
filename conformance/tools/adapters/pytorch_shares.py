#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pytorch_shares.py - where the time of a step under PyTorch went, in the
classes, by the names and with the arithmetic of `fsdp-cts bench shares`
(conformance/tools/bench/shares.h), from a trace that torch.profiler has written.

usage: pytorch_shares.py TRACE.json [--step NAME]

TRACE.json is what export_chrome_trace leaves, of one rank. --step: only what
lies within the first annotation (record_function) of that name; without it,
all from the first begin to the last end. Needs no torch.

On a GPU kernels and copies count, by their names; what of attention is a
matrix product in a kernel of its own counts as one. On a CPU it is operators:
on each thread the outermost that has a class, and gloo's own annotations.
"""

import argparse
import json
import math
import re

# In order of precedence; the first three are operators.
CLASSES = ("attention", "gemm", "rest", "communication")
NAMES = ("attention", "gemm", "rest", "exposed", "idle", "communication")

KERNELS = (
    ("communication", r"nccl"),
    ("attention", r"fmha|attention|flash_(fwd|bwd)|sdpa"),
    ("gemm", r"gemm|gemv|cutlass|xmma|nvjet|splitk|cublas"),
    ("rest", r""),
)
OPERATORS = (
    ("communication", r"gloo:|c10d::"),
    ("attention", r"aten::_?scaled_dot_product"),
    ("gemm", r"aten::(linear|matmul|mm|addmm|bmm|baddbmm|mv|addmv)$"),
    ("rest", r"(aten|fsdp)::"),
)


def class_of(name, table):
    """None: it is neither work nor communication."""
    for what, pattern in table:
        if table is KERNELS and re.search(pattern, name, re.IGNORECASE):
            return what
        if table is OPERATORS and re.match(pattern, name):
            return what
    return None


def shares(spans, begin, end):
    """Spans are (class, begin, end), in any order; ValueError if one is none.
    At every moment the first class that runs counts; NAMES are returned."""
    if not (math.isfinite(begin) and math.isfinite(end) and end > begin):
        raise ValueError(f"the step is from {begin} to {end}")
    edges = []
    for what, a, b in spans:
        if what not in CLASSES:
            raise ValueError(f"no class '{what}'")
        if not (math.isfinite(a) and math.isfinite(b) and b >= a):
            raise ValueError(f"a span is from {a} to {b}")
        edges.append((min(max(a, begin), end), what, 1))
        edges.append((min(max(b, begin), end), what, -1))
    edges.sort(key=lambda edge: edge[0])
    running = dict.fromkeys(CLASSES, 0)
    took = dict.fromkeys(NAMES, 0.0)
    last = begin
    for at, what, by in edges + [(end, "rest", 0)]:
        first = next((c for c in CLASSES if running[c]), "idle")
        took["exposed" if first == "communication" else first] += at - last
        if running["communication"]:
            took["communication"] += at - last
        running[what] += by
        last = at
    return {name: took[name] / (end - begin) for name in NAMES}


def outermost(events):
    """Of one thread: what does not lie within another. (begin, end, class)"""
    kept = []
    for begin, end, what in sorted(events, key=lambda e: (e[0], -e[1])):
        if not kept or begin >= kept[-1][1]:
            kept.append((begin, end, what))
    return kept


def spans_of(events, gpu):
    kernels = [
        e
        for e in events
        if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")
    ]
    if gpu and not kernels:
        raise ValueError("there is no kernel in the trace")
    if kernels:
        return [
            (class_of(e["name"], KERNELS), e["ts"], e["ts"] + e["dur"])
            for e in kernels
        ]
    threads = {}
    for e in events:
        what = class_of(e["name"], OPERATORS)
        if what and e.get("cat") in ("cpu_op", "user_annotation"):
            span = (e["ts"], e["ts"] + e["dur"], what)
            threads.setdefault((e["pid"], e["tid"]), []).append(span)
    return [
        (what, begin, end)
        for thread in threads.values()
        for begin, end, what in outermost(thread)
    ]


def read(path, step=None, gpu=False):
    """The shares of a trace. ValueError: it is none, or has no such step, or
    is one of a GPU without a kernel."""
    with open(path, encoding="utf-8") as f:
        document = json.load(f)
    try:
        events = [e for e in document["traceEvents"] if e.get("ph") == "X"]
        spans = spans_of(events, gpu)
        steps = [
            (e["ts"], e["ts"] + e["dur"])
            for e in events
            if e["name"] == step and e.get("cat") == "user_annotation"
        ]
        if step is None and spans:
            steps = [(min(s[1] for s in spans), max(s[2] for s in spans))]
        if not steps:
            raise ValueError(f"{path}: no step '{step}', or nothing at all")
        return shares(spans, *steps[0])
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is no trace: {error!r}") from error


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("trace")
    parser.add_argument("--step")
    arguments = parser.parse_args()
    try:
        found = read(arguments.trace, arguments.step)
    except (OSError, ValueError) as error:
        raise SystemExit(f"pytorch_shares: {error}") from error
    for name in NAMES:
        print(f"{name:<14} {found[name]:.3f}")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""check_record.py - what a rank, or the unsharded run, showed of a model.

Everything is a row of JSON (docs/formats.md, "Records of your own model").
A tensor is there as its digest, and as the bits of a few elements, at places
that depend on the parameter's size alone: so that a shard, a local gradient
and the unsharded run's gradient have values of the same elements.
"""

import ctypes
import hashlib
import json
import math
import os
import struct
import sys

import torch

SAMPLES = 32  # elements of a parameter whose bits are recorded

DTYPES = {
    torch.float32: "f32", torch.bfloat16: "bf16", torch.float16: "f16",
    torch.float64: "f64", torch.int64: "i64", torch.int32: "i32",
    torch.uint8: "u8", torch.bool: "bool",
}
WORDS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def places(n):
    """The elements of a tensor of n whose bits are recorded."""
    if n <= SAMPLES:
        return list(range(n))
    return [i * (n - 1) // (SAMPLES - 1) for i in range(SAMPLES)]


def flat(t):
    return t.detach().reshape(-1).contiguous()


def digest_of(t):
    """SHA-256 of a tensor's bytes."""
    t = flat(t)
    n = t.numel() * t.element_size()
    # No numpy: it has no bfloat16, and may not be installed.
    view = (ctypes.c_char * n).from_address(t.data_ptr()) if n else b""
    return hashlib.sha256(view).hexdigest()


def digest_of_any(value):
    """Of tensors in lists, dictionaries and the like; of the rest its text."""
    h = hashlib.sha256()

    def walk(v):
        if isinstance(v, torch.Tensor):
            h.update(f"tensor {tuple(v.shape)} {v.dtype}".encode())
            h.update(digest_of(v).encode())
        elif isinstance(v, dict):
            for key in v:
                h.update(repr(key).encode())
                walk(v[key])
        elif isinstance(v, (list, tuple)):
            h.update(f"list {len(v)}".encode())
            for x in v:
                walk(x)
        elif hasattr(v, "__dict__"):
            walk(vars(v))
        else:
            h.update(repr(v).encode())

    walk(value)
    return h.hexdigest()


def bits_of(t, first, n):
    """Of the elements from `first` on of a parameter of n, as digits."""
    t = flat(t)
    at = [i - first for i in places(n) if first <= i < first + t.numel()]
    if not at:
        return ""
    width = t.element_size()
    words = t[torch.tensor(at)].view(WORDS[width]).tolist()
    mask = (1 << 8 * width) - 1
    return "".join(f"{w & mask:0{2 * width}x}" for w in words)


def loss_pair(loss):
    """As [decimal, bits] of a float32; "nan" and "inf" are texts."""
    value = float(loss.detach().float())
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    return [value if math.isfinite(value) else str(value), f"0x{bits:08x}"]


def plain(text, most):
    """What a record takes: printable ASCII, shorter than `most`."""
    text = " ".join(str(text).split())
    return "".join(c if " " <= c <= "~" else "?" for c in text)[:most - 1]


def library():
    """Of a model's file that has imported DeepSpeed this, too."""
    versions = [("torch", torch.__version__)]
    if "deepspeed" in sys.modules:
        versions.append(("DeepSpeed", sys.modules["deepspeed"].__version__))
    return ", ".join(f"{name} {version.split('+')[0]}"
                     for name, version in versions)


def an_end(how, place="", message=""):
    return {"how": how, "place": plain(place, 160),
            "message": plain(message, 240)}


class Record:
    """Of one process: a rank's, or the unsharded run's."""

    def __init__(self, role, rank, task):
        self.header = {
            "version": 1, "role": role, "rank": rank, "world": task.ranks,
            "library": library(),
            "wrapper": "none", "optimizer": "none", "steps": task.steps,
            "microbatches": task.microbatches, "compute": task.compute,
            "reduce": task.reduce,
        }
        self.seen = set()
        self.lists = {name: [] for name in (
            "parameters", "names", "units", "pieces", "held", "passes",
            "buffers", "tensors", "events", "filled")}

    def add(self, name, *row):
        self.lists[name].append(list(row))

    def tensor(self, stage, step, microbatch, rank, p, first, n, t):
        """Elements of parameter p (which has n) from `first` on. Weights that
        are seen twice in a pass, and what parts of a parameter have in common
        in the unsharded run, are there once."""
        key = (stage, step, microbatch, rank, p, first, t.numel())
        if key in self.seen:
            if stage == "unsharded" or stage.startswith("evaluated") or \
                    self.header["role"] == "unsharded":
                return
        self.seen.add(key)
        self.add("tensors", stage, step, microbatch, rank, p, first, t.numel(),
                 DTYPES[t.dtype], digest_of(t), bits_of(t, first, n))

    def write(self, path, end, saved=None):
        """`end`, `saved`: how the run, and its checkpoint, ended."""
        saved = saved or end
        with open(path + ".partial", "w", encoding="ascii") as f:
            fields = [f'"{k}": {json.dumps(v)}'
                      for k, v in {**self.header, "end": end,
                                   "saved": saved}.items()]
            for name, rows in self.lists.items():
                lines = ",\n ".join(json.dumps(row, separators=(",", ":"))
                                    for row in rows)
                fields.append(f'"{name}": [{lines}]')
            f.write("{" + ",\n".join(fields) + "}\n")
        os.rename(path + ".partial", path)

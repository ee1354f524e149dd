# SPDX-License-Identifier: Apache-2.0
"""adapter_job.py - the files that the suite and an adapter exchange.

A job is read, a record is written (docs/adapters.md, docs/formats.md).
Nothing here knows an engine.
"""

import copy
import json
import math
import os
import struct

import numpy as np

RECORD_VERSION = 2
TENSORS_VERSION = 1
KINDS = 8  # of live bytes
DTYPES = {"F32": np.dtype("<f4"), "I32": np.dtype("<i4"),
          "I64": np.dtype("<i8"), "BF16": np.dtype("<u2")}


def read_json(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def write_text(path, text):
    """A file that is there is whole."""
    with open(path + ".partial", "w", encoding="utf-8") as f:
        f.write(text)
    os.rename(path + ".partial", path)


def read_safetensors(path):
    with open(path, "rb") as f:
        data = f.read()
    (n,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + n])
    header.pop("__metadata__", None)
    out = {}
    for name, t in header.items():
        first, last = t["data_offsets"]
        values = np.frombuffer(data[8 + n + first : 8 + n + last],
                               DTYPES[t["dtype"]])
        out[name] = values.reshape(t["shape"]).copy()
    return out


# Of a record's values, which are float32 but for what was seen in 16 bits, and
# buffers; bfloat16, which numpy does not have, is uint16 here.
DTYPE_OF = {"f": "F32", "e": "F16", "H": "BF16", "l": "I64"}


def write_safetensors(path, tensors):
    """Values by name, as a record's tensors."""
    header = {"__metadata__": {"record-version": str(TENSORS_VERSION)}}
    at = 0
    for name in sorted(tensors):
        n = tensors[name].nbytes
        header[name] = {"dtype": DTYPE_OF[tensors[name].dtype.char],
                        "shape": [tensors[name].size],
                        "data_offsets": [at, at + n]}
        at += n
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path + ".partial", "wb") as f:
        f.write(struct.pack("<Q", len(text)))
        f.write(text)
        for name in sorted(tensors):
            f.write(np.ascontiguousarray(tensors[name]).tobytes())
    os.rename(path + ".partial", path)


def said_of(error):
    """What kind it is, and the last line of what it says; of what a rank of
    another's says that is the line that matters."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[-1] if lines else 'nothing'}"[:190]


def as_float(x):
    """[decimal, bits]: JSON has no NaN and no infinity."""
    x = np.float32(x)
    bits = "0x%08x" % x.view(np.uint32)
    if math.isnan(x):
        return ["nan", bits]
    if math.isinf(x):
        return ["inf" if x > 0 else "-inf", bits]
    return [float(x), bits]


class Case:
    """A case of a job: its fields, its model, its weights and batches."""

    def __init__(self, folder):
        self.json = read_json(os.path.join(folder, "case.json"))
        self.id = self.json["id"]
        self.fields = self.json["case"]
        self.modules = self.json["modules"]
        self.parameters = self.json["parameters"]
        self.n_units = self.json["units"]
        self.buffers = self.json.get("buffers", [])
        self.groups = self.json.get("groups", {})
        self.weights = read_safetensors(
            os.path.join(folder, "weights.safetensors"))
        self.initial_buffers = read_safetensors(
            os.path.join(folder, "buffers.safetensors")) if self.buffers else {}
        self._batches = read_safetensors(
            os.path.join(folder, "batches.safetensors"))

    def __getattr__(self, name):
        try:
            return self.__dict__["fields"][name]
        except KeyError as error:
            raise AttributeError(name) from error

    def of_world(self, ranks, rewraps):
        """The same, of so many ranks, who share all as one unit or each unit
        as it is."""
        other = copy.copy(self)
        other.id = f"{self.id}-{ranks}"
        other.fields = {**self.fields, "ranks": ranks, "replicas": 1,
                        "strategy": "full-shard"}
        if rewraps:
            other.fields["wrap"] = "whole"
            other.modules = [{**m, "unit": 0} for m in self.modules]
        return other

    @property
    def precision(self):
        return self.fields.get("precision", "f32")

    @property
    def recompute(self):
        return self.fields.get("recompute")

    @property
    def script_text(self):
        """Of a case that plays a script of its own; else None."""
        return self.json.get("script")

    def is_frozen(self, parameter):
        return self.parameters[parameter].get("frozen", False)

    def has_backward(self, module):
        """Of a module that lies behind nothing that is trained when a life
        begins it has none, whatever is thawed."""
        return any(not self.is_frozen(p) and said["module"] <= module
                   for p, said in enumerate(self.parameters))

    def is_ignored(self, parameter):
        return self.parameters[parameter].get("ignored", False)

    def group_of(self, parameter):
        """What is tied is in that of its original."""
        return self.groups["of"][self.original(parameter)] if self.groups \
            else 0

    @property
    def n_groups(self):
        return self.groups.get("n", 1)

    def original(self, parameter):
        """The parameter that it is another name of, or itself."""
        return self.parameters[parameter].get("original", parameter)

    @property
    def is_tied(self):
        return any("original" in p for p in self.parameters)

    @property
    def shards(self):
        return self.ranks // self.replicas

    @property
    def reshards(self):
        return self.strategy in ("full-shard", "hybrid-shard")

    def unit_of(self, parameter):
        return self.modules[self.parameters[parameter]["module"]]["unit"]

    def parameters_of_module(self, module):
        return [p for p in range(len(self.parameters))
                if self.parameters[p]["module"] == module]

    def parameters_of(self, unit):
        """That lie in it: of tied ones the original alone."""
        return [p for p in range(len(self.parameters))
                if self.unit_of(p) == unit and self.original(p) == p and
                not self.is_ignored(p)]

    def is_mixed(self, unit):
        """Whether some of it is frozen, and some is not."""
        return len({self.is_frozen(p) for p in self.parameters_of(unit)}) > 1

    def batch(self, step, microbatch, rank):
        """By name; samples that did not change are those of a step before."""
        found = {}
        for s in range(step + 1):
            prefix = f"{s}.{microbatch}.{rank}."
            for name, values in self._batches.items():
                if name.startswith(prefix):
                    found[name[len(prefix):]] = values
        return found


class RankRecord:
    """What one rank shows."""

    def __init__(self, rank):
        self.rank = rank
        self.losses = []
        self.other_losses = []
        self.answers = []
        self.edges = []  # dtypes that were seen there (claim dtypes)
        self.sequences = [[]]
        self.shard_sequence = 0
        self.step_sequences = []
        self.end_sequence = 0
        self.tensors = {}
        self.pending = []  # collectives since the last mark
        self.entered = 0
        self.last = None
        self.memory = {}  # what was measured of it (claim live-bytes)

    def collective(self, kind, dim, dtype, unit, n):
        self.pending.append([kind, dim, dtype, "rank", 0, unit, n])
        self.entered += 1
        self.last = (kind, unit)

    def mark(self):
        """What was communicated since the last mark: a sequence's index."""
        sequence, self.pending = self.pending, []
        if sequence not in self.sequences:
            self.sequences.append(sequence)
        return self.sequences.index(sequence)

    def tensor(self, stage, step, microbatch, parameter, first, values):
        """`values`: float32; or, of a stage that is seen in its own dtype,
        float16, or bfloat16 as uint16."""
        values = np.asarray(values).reshape(-1)
        if values.dtype.char not in DTYPE_OF:
            raise TypeError(f"{stage}: values of {values.dtype}")
        if values.size:
            name = f"{stage}.{step}.{microbatch}.{parameter}#{first}"
            self.tensors[name] = values.copy()

    def edge(self, side, unit, dtype):
        if [side, unit, dtype] not in self.edges:
            self.edges.append([side, unit, dtype])

    def forget(self):
        """The first life of two has been lived."""
        self.other_losses, self.losses = self.losses, []
        self.tensors, self.step_sequences, self.edges = {}, [], []

    def write(self, folder, status, message, seconds):
        steps = len(self.step_sequences)
        write_safetensors(
            os.path.join(folder, f"rank-{self.rank}.safetensors"), self.tensors)
        error = None
        if status:
            error = {"status": status, "rank": self.rank, "native": 0,
                     "where": "adapter", "message": message[:200]}
        write_text(os.path.join(folder, f"rank-{self.rank}.json"), json.dumps({
            "version": RECORD_VERSION,
            "rank": self.rank,
            "status": status,
            "error": error,
            "losses": [as_float(x) for x in self.losses],
            "other_losses": [as_float(x) for x in self.other_losses],
            "sequences": self.sequences,
            "shard_sequence": self.shard_sequence,
            "step_sequences": self.step_sequences,
            "end_sequence": self.end_sequence,
            "memory": {  # 0: nobody measures it
                "peak": [0] * KINDS, "peak_parameters": 0, "peak_engine": 0,
                "peak_storage": 0, "peak_live_over_storage": 0,
                "dirty_padding": 0, "misplaced": 0, "bad_ranges": 0,
                "left_live": 0, "left_storage": 0, "process_growth": 0,
                "new_channels": 0,
                "after_shard": [0] * KINDS,
                "after_step": [[0] * KINDS] * steps,
                "allocations": [0] * steps,
                "launches": [0] * steps,
                "timeline": [],
                **self.memory},
            "races": {"count": 0, "unfollowed": 0, "first": []},
            "flights": [],  # nor these: the claim streams is not made
            "answers": self.answers,
            **({"edges": self.edges} if self.edges else {}),
            "tensors": len(self.tensors),
            "seconds": seconds,
        }))


def write_case(folder, case, engine, ends):
    """How the ranks ended; the last file of a record."""
    write_text(os.path.join(folder, "case.json"), json.dumps({
        "version": RECORD_VERSION,
        "id": case.id,
        "case": case.fields,
        "engine": engine.name,
        "engine_version": engine.version,
        "claims": engine.claims,
        "world": "adapter",
        "ranks": ends,
    }))

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""checkpoint_pytorch.py - checkpoints of this suite, read by PyTorch itself,
and the reverse.

usage: checkpoint_pytorch.py FSDP-CTS SAMPLES

SAMPLES has a sharded and a full checkpoint of the same training. The full one
is what counts: safetensors.torch.load_file. What is to be the same, bit for
bit: the sharded one through torch.distributed.checkpoint's
HuggingFaceStorageReader, as whole tensors and as DTensors on 2 and 3 ranks
that split other dimensions; PyTorch's own consolidation of it; ours. Then
PyTorch's HuggingFaceStorageWriter writes, and we inspect it.
"""

import glob
import json
import os
import socket
import subprocess
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing
from safetensors.torch import load_file
from torch.distributed.checkpoint._consolidate_hf_safetensors import (
    consolidate_safetensors_files_on_every_rank,
)
from torch.distributed.checkpoint.hf_storage import (
    HuggingFaceStorageReader,
    HuggingFaceStorageWriter,
)
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor


def only(folder):
    found = glob.glob(folder + "/checkpoint-*")
    assert len(found) == 1, found
    return found[0]


def load_full(folder, stems=("model", "optimizer")):
    full = {}
    for stem in stems:
        for path in sorted(glob.glob(f"{folder}/{stem}*.safetensors")):
            for name, x in load_file(path).items():
                assert name not in full, name
                full[name] = x
    return full


def same(got, want, what):
    assert sorted(got) == sorted(want), (what, sorted(got), sorted(want))
    for name, x in want.items():
        y = got[name]
        assert y.dtype == x.dtype and y.shape == x.shape, (what, name)
        bits = [t.contiguous().view(torch.int32) for t in (x, y)]
        assert torch.equal(*bits), f"{what}: other values of {name}"


def blank(full):
    """As many NaN as there are values: what is not read shows."""
    return {n: torch.full_like(x, float("nan")) for n, x in full.items()}


def read_whole(folder, full):
    """In one process, without a process group; step and products too."""
    state = blank(full)
    state["optim.step"] = torch.zeros((), dtype=torch.int64)
    state["optim.beta1_power"] = torch.zeros(())
    dcp.load(state, storage_reader=HuggingFaceStorageReader(folder),
             no_dist=True)
    step = state.pop("optim.step").item()
    assert state.pop("optim.beta1_power").item() == torch.tensor(
        0.9).pow(step).item()
    assert step == 2, step
    same(state, full, folder)


def metadata_is_whole(folder, full):
    """The reader sees the shapes, and chunks that cover each tensor once."""
    seen = HuggingFaceStorageReader(folder).read_metadata()
    for name, x in full.items():
        m = seen.state_dict_metadata[name]
        assert m.size == x.shape, (name, m.size, x.shape)
        assert sum(c.sizes.numel() for c in m.chunks) == x.numel(), name


def rank_main(rank, world, port, folder, sample, out):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = str(port)
    dist.init_process_group("gloo", rank=rank, world_size=world)
    mesh = init_device_mesh("cpu", (world,))
    full = load_full(sample)
    for dim in (0, 1):
        state = {
            n: distribute_tensor(
                x, mesh, [Shard(dim if x.dim() > dim else 0)])
            for n, x in blank(full).items()
        }
        dcp.load(state, storage_reader=HuggingFaceStorageReader(folder))
        same({n: x.full_tensor() for n, x in state.items()}, full,
             f"DTensors of {world} ranks, dimension {dim}")
    dcp.save(state, storage_writer=HuggingFaceStorageWriter(
        out, save_distributed=True))
    dist.barrier()
    dist.destroy_process_group()


def on_ranks(world, *arguments):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    torch.multiprocessing.spawn(
        rank_main, (world, port, *arguments), nprocs=world)


def inspect(cts, path):
    return json.loads(subprocess.check_output([cts, "inspect", "--json", path]))


def we_read(cts, folder, full):
    """Files of PyTorch's writer; its chunks, put together by their offsets."""
    size = {}
    paths = glob.glob(folder + "/*.safetensors")
    assert paths
    for path in paths:
        seen = inspect(cts, path)
        info = json.loads(seen["metadata"]["DCP_SHARDING_INFO"])
        for t in seen["tensors"]:
            assert t["dtype"] == "F32", t
            at = info[t["name"]]["saved_offsets"]
            end = [a + n for a, n in zip(at, t["shape"])]
            size[t["name"]] = [max(a, b) for a, b in zip(
                size.get(t["name"], end), end)]
    assert size == {n: list(x.shape) for n, x in full.items()}, size


def main():
    cts, samples = os.path.realpath(sys.argv[1]), os.path.realpath(sys.argv[2])
    sample = only(samples + "/full")
    sharded = only(samples + "/sharded")
    full = load_full(sample)
    assert len(full) >= 9
    with tempfile.TemporaryDirectory() as folder:
        metadata_is_whole(sharded, full)
        read_whole(sharded, full)
        read_whole(sample, full)
        ours = folder + "/ours"
        subprocess.check_output([cts, "consolidate", samples + "/sharded",
                                 ours])
        same(load_full(only(ours)), full, "fsdp-cts consolidate")
        theirs = folder + "/theirs"
        os.mkdir(theirs)
        consolidate_safetensors_files_on_every_rank(
            sharded, theirs, {n: 1 for n in full})
        same(load_full(theirs), full, "PyTorch's consolidation")
        for world in (2, 3):
            written = f"{folder}/written-{world}"
            on_ranks(world, sharded, sample, written)
            we_read(cts, written, full)
    print(f"torch {torch.__version__}: {len(full)} tensors the same")


if __name__ == "__main__":
    main()

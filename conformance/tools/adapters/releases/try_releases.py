# SPDX-License-Identifier: Apache-2.0
"""try_releases.py - what shards fully, but has no adapter: does it run where
there is no GPU?

Of each NAME=RELEASE the wheel is unpacked beside the PyTorch of this Python,
with what it imports (PACKAGES), and a process of one rank trains a model of two
layers with it, as its own pages begin (PROGRAM). Into KEEP/NAME-RELEASE/ goes
error.txt: the line that the process ended in, or that it ran, and what the
suite then lacks. The environment is removed.

    python3 try_releases.py fixtures/releases megatron-fsdp=0.6.1
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

BEGIN = """
import os, sys, tempfile
import torch, torch.distributed as dist
dist.init_process_group("gloo", rank=0, world_size=1,
                        init_method="file://" + sys.argv[1])
model = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Linear(6, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""

PROGRAM = {
    "megatron-fsdp": """
from megatron_fsdp import fully_shard_model
from torch.distributed.device_mesh import init_device_mesh
mesh = init_device_mesh("cpu", (1,), mesh_dim_names=("dp",))
model = fully_shard_model(module=model, fsdp_unit_modules=[torch.nn.Linear],
                          device_mesh=mesh, dp_shard_dim="dp")
""",
    "colossalai": """
from colossalai.booster import Booster
from colossalai.booster.plugin import GeminiPlugin
model, optimizer, *_ = Booster(plugin=GeminiPlugin()).boost(model, optimizer)
""",
    "torchao": """
from torch.distributed.fsdp import fully_shard
from torchao.float8 import Float8LinearConfig, convert_to_float8_training
convert_to_float8_training(model, config=Float8LinearConfig(
    enable_fsdp_float8_all_gather=True, emulate=True))
fully_shard(model)
""",
}

END = """
model(torch.ones(2, 4)).sum().backward()
os._exit(0)  # whatever its threads still wait for
"""

# What is imported beside PyTorch and what requirements-more.txt has installed;
# without what that wants in turn, which would be another PyTorch.
PACKAGES = {
    "megatron-fsdp": [],
    "colossalai": """accelerate annotated_types bcrypt bitsandbytes certifi cffi
        charset-normalizer click contexttimer cryptography decorator deprecated
        diffusers==0.29.0 einops fabric filelock galore_torch google
        huggingface_hub==0.25.2 idna importlib_metadata invoke jsonschema
        msgpack ninja paramiko peft==0.13.2 pillow plumbum protobuf pydantic
        pydantic_core pynacl pyyaml ray regex requests rich rpyc safetensors
        sentencepiece tokenizers==0.15.2 tqdm transformers==4.39.3
        typing_inspection urllib3 wrapt""".split(),
    "torchao": [],
}

RUNS = {
    "torchao": "it runs, in emulated float8 under fully_shard, a forward and a "
               "backward of one rank; the suite has no bounds of 8 bits",
}


def last_error(text):
    """The last line that names an error of Python; else the last line."""
    lines = [re.sub(r"^\[rank0\]:\s*", "", line).strip()
             for line in text.splitlines() if line.strip()]
    # What is said while objects go is not what ended the process.
    for i, line in enumerate(lines):
        if line.startswith("Exception ignored in:"):
            lines = lines[:i]
            break
    errors = [line for line in lines if re.match(r"[\w.]+(Error|Exit)\b", line)]
    return (errors or lines or ["nothing was said"])[-1][:300]


def attempt(name, release, seconds):
    with tempfile.TemporaryDirectory() as scratch:
        into = os.path.join(scratch, "packages")
        done = subprocess.run(
            [sys.executable, "-m", "pip", "--quiet",
             "--disable-pip-version-check", "install", "--no-deps", "--target",
             into, f"{name}=={release}", *PACKAGES[name]],
            check=False, capture_output=True, text=True)
        if done.returncode != 0:
            return "not installed: " + last_error(done.stderr)
        try:
            done = subprocess.run(
                [sys.executable, "-c", BEGIN + PROGRAM[name] + END,
                 os.path.join(scratch, "meet")],
                check=False, capture_output=True, text=True, timeout=seconds,
                env={**os.environ, "PYTHONPATH": into, "OMP_NUM_THREADS": "1",
                     "CUDA_VISIBLE_DEVICES": ""})
        except subprocess.TimeoutExpired:
            return f"it did not end within {seconds} s"
        if done.returncode == 0:
            return RUNS.get(name, "it runs: it wants an adapter")
        return last_error(done.stderr).replace(scratch, "...")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("keep", metavar="KEEP", type=os.path.abspath)
    parser.add_argument("releases", metavar="NAME=RELEASE", nargs="+",
                        help="of " + ", ".join(PROGRAM))
    parser.add_argument("--seconds", type=int, default=300,
                        help="that a process may take (300)")
    a = parser.parse_args()
    pairs = [release.partition("=")[::2] for release in a.releases]
    for name, release in pairs:
        if name not in PROGRAM or not release:
            parser.error(f"'{name}={release}': NAME=RELEASE, of " +
                         ", ".join(PROGRAM))
    for name, release in pairs:
        line = attempt(name, release, a.seconds)
        kept = os.path.join(a.keep, f"{name}-{release}")
        shutil.rmtree(kept, ignore_errors=True)
        os.makedirs(kept)
        with open(os.path.join(kept, "error.txt"), "w", encoding="utf-8") as f:
            f.write(line + "\n")
        print(f"{name} {release}: {line}", flush=True)


if __name__ == "__main__":
    main()

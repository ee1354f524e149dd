# SPDX-License-Identifier: Apache-2.0
"""record_releases.py - releases of PyTorch, or of DeepSpeed, each played by the
adapters.

Of each release: the wheel is downloaded and unpacked, without a GPU's
libraries (stand_ins.py); a selection of cases is recorded with FSDP2 and with
FSDP1, and bundled; then all of it but what is kept is removed. Into
KEEP/IMPLEMENTATION-RELEASE/ go records and about.json; or error.txt, where
there is nothing to judge. One release after the other: at most one environment
is there at a time. With --engine deepspeed-zero3 the releases are DeepSpeed's,
on the PyTorch of this Python.

    python3 record_releases.py build/bin/fsdp-cts fixtures/releases 2.8.0
    python3 record_releases.py build/bin/fsdp-cts fixtures/releases 0.18.9 \
        --engine deepspeed-zero3
"""

import argparse
import glob
import importlib.metadata
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile

import stand_ins

HERE = os.path.dirname(os.path.abspath(__file__))
ADAPTERS = os.path.dirname(HERE)

# Small cases: an average by itself, with gradients kept, without shards,
# behind replicas, over another divisor, an evaluation; saved and loaded.
CASES = {
    "pytorch-fsdp2": [
        "linear.small.exact.full-shard.k2.per-parameter.layer.rank.ns.sgd",
        "linear.small.exact.no-shard.k2.per-parameter.layer.rank.s.sgd",
        "linear.small.exact.full-shard.k3.per-parameter.layer.rank.ns.sgd"
        ".div4",
        "linear.small.exact.no-shard.k3.per-parameter.layer.rank.s.sgd.div4",
        "mlp.odd.natural.full-shard.k2.per-parameter.layer.rank.s.sgd.eval",
    ],
    "pytorch-fsdp1": [
        "linear.small.exact.full-shard.k2.flat.layer.rank.ns.sgd",
        "linear.small.exact.no-shard.k2.flat.layer.rank.s.sgd",
        "linear.small.exact.full-shard.k4.flat.layer.rank.s.sgd",
        "mlp.odd.natural.full-shard.k2.flat.layer.rank.s.sgd.eval",
    ],
    "deepspeed-zero3": [
        "linear.small.exact.full-shard.k2.flat.layer.rank.s.sgd",
        "mlp.odd.natural.full-shard.k2.flat.layer.rank.s.sgd.eval",
        "mlp.odd.natural.full-shard.k3.flat.layer.rank.s.adamw.resume.rec4",
    ],
}
ON_TOP = "deepspeed-zero3"  # of the PyTorch that is here
COLUMN = {"pytorch-fsdp2": "FSDP2", "pytorch-fsdp1": "FSDP1",
          ON_TOP: "ZeRO-3"}
NAME = {"pytorch-fsdp2": "PyTorch FSDP2, `fully_shard` (per parameter)",
        "pytorch-fsdp1":
            "PyTorch FSDP1, `FullyShardedDataParallel` (flat)",
        ON_TOP: "DeepSpeed ZeRO-3 (cases whose units are one parameter)"}
URL = {"PyTorch": "https://pytorch.org",
       "DeepSpeed": "https://www.deepspeed.ai"}


class Failed(Exception):
    """One line for the release's row."""


def last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "nothing was said"


def call(what, command, **more):
    done = subprocess.run(command, check=False, capture_output=True, text=True,
                          **more)
    if done.returncode != 0:
        raise Failed(f"{what}: {last_line(done.stderr or done.stdout)}")
    return done.stdout


def gigabytes(folder):
    """What lies in it."""
    n = 0
    for path, _, files in os.walk(folder):
        n += sum(os.lstat(os.path.join(path, f)).st_size for f in files)
    return n / 1e9


def pip(*arguments):
    return [sys.executable, "-m", "pip", "--quiet",
            "--disable-pip-version-check", *arguments]


def install(release, scratch, wheels, python):
    """An environment of its own; what it needs to be set. `python` is what
    all of them need."""
    found = glob.glob(os.path.join(wheels, f"torch-{release}-*.whl")) \
        if wheels else []
    if not found:
        call("not downloaded", pip("download", "--no-deps", "--dest", scratch,
                                   f"torch=={release}"))
        found = glob.glob(os.path.join(scratch, "*.whl"))
    wheel = os.path.join(scratch, "wheel")
    with zipfile.ZipFile(found[0]) as z:
        z.extractall(wheel)
    libraries = os.path.join(scratch, "libraries")
    stand_ins.make(libraries, wheel)
    return {"LD_LIBRARY_PATH": libraries, "PYTHONPATH": f"{wheel}:{python}",
            "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}


def install_on_top(release, scratch):
    """DeepSpeed, of which nothing is compiled: no case needs it. What else it
    wants, requirements-more.txt has put beside PyTorch."""
    into = os.path.join(scratch, "deepspeed")
    call("not installed", pip("install", "--no-deps", "--no-build-isolation",
                              "--target", into, f"deepspeed=={release}"),
         env={**os.environ, "DS_BUILD_OPS": "0", "CUDA_VISIBLE_DEVICES": ""})
    return {"PYTHONPATH": into, "CUDA_VISIBLE_DEVICES": "",
            "OMP_NUM_THREADS": "1"}


def project(engine):
    return "DeepSpeed" if engine == ON_TOP else "PyTorch"


def about(engine, release):
    adapter = "conformance/tools/adapters/" + \
        engine.replace("-", "_") + ".py"
    version = ".".join(map(str, sys.version_info[:2]))
    whose = project(engine)
    software = [f"{whose} {release}"]
    options = ""
    if engine == ON_TOP:
        software += [f"PyTorch {importlib.metadata.version('torch')}"]
        options = f" --engine {engine}"
    return {
        "version": 1, "name": NAME[engine], "column": COLUMN[engine],
        "release": f"{whose} {release}", "url": URL[whose],
        "hardware": "two cores of an x86-64 CPU",
        "software": [*software, "gloo", f"Python {version}"],
        "adapter": adapter,
        "command": "python3 conformance/tools/adapters/releases/"
                   f"record_releases.py build/bin/fsdp-cts KEEP {release}"
                   f"{options}",
        "seed": 0, "made": time.strftime("%Y-%m-%d"), "notes": "",
    }


def record(a, engine, release, settings, scratch):
    """Plays the selection, and keeps its records; a line about it."""
    given = [f"{name}={value}" for name, value in settings.items()]
    adapter = os.path.join(ADAPTERS, engine.replace("-", "_") + ".py")
    records = os.path.join(scratch, engine)
    done = subprocess.run(
        [a.cts, "run", "--adapter",
         shlex.join(["env", *given, sys.executable, adapter]), "--case",
         ",".join(CASES[engine]), "--records", records, "--partial-ok"],
        check=False, capture_output=True, text=True)
    found = glob.glob(os.path.join(records, "*.*", "case.json"))
    if not found:
        said = re.findall(rf"{engine}: .*|\w+Error: .*", done.stdout +
                          done.stderr)
        raise Failed(said[-1][:300] if said else
                     last_line(done.stderr or done.stdout))
    kept = os.path.join(scratch, engine + "-kept")
    for path in found:  # without the job, and without unsharded runs
        case = os.path.dirname(path)
        shutil.copytree(case, os.path.join(kept, os.path.basename(case)))
    with open(os.path.join(kept, "about.json"), "w", encoding="utf-8") as f:
        json.dump(about(engine, release), f, indent=1)
        f.write("\n")
    return kept


def bundle(a, records, scratch):
    into = os.path.join(scratch, "bundle")
    shutil.rmtree(into, ignore_errors=True)
    call("no bundle", [a.cts, "submit", records, "--partial", "--quiet",
                       "--about", os.path.join(records, "about.json"),
                       "--bundle", into])
    return call("no results", [a.cts, "results", "--releases", into])


def one_release(a, release, python):
    began = time.monotonic()
    settings, why, greatest = {}, None, 0.0
    with tempfile.TemporaryDirectory(dir=a.scratch) as scratch:
        try:
            settings = install_on_top(release, scratch) if \
                a.engine == [ON_TOP] else \
                install(release, scratch, a.wheels, python)
        except (Failed, OSError, subprocess.CalledProcessError) as error:
            why = last_line(str(error))
        for engine in a.engine:
            kept = os.path.join(a.keep, f"{engine}-{release}")
            shutil.rmtree(kept, ignore_errors=True)
            try:
                if why:
                    raise Failed(why)
                records = record(a, engine, release, settings, scratch)
                print(bundle(a, records, scratch), flush=True)
                shutil.copytree(records, kept)
            except Failed as error:
                # Folders of this run are no part of what is wrong.
                line = str(error).replace(scratch, "...")
                print(f"{engine} {release}: {line}", flush=True)
                os.makedirs(kept)
                with open(os.path.join(kept, "error.txt"), "w",
                          encoding="utf-8") as f:
                    f.write(line + "\n")
        greatest = gigabytes(scratch)
    whose = project(a.engine[0])
    print(f"{whose} {release}: {time.monotonic() - began:.0f} s, "
          f"{greatest:.1f} GB, removed", flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cts", metavar="FSDP-CTS", type=os.path.abspath)
    parser.add_argument("keep", metavar="KEEP", type=os.path.abspath)
    parser.add_argument("releases", metavar="RELEASE", nargs="+")
    parser.add_argument("--engine", action="append", choices=sorted(CASES),
                        help="only this implementation; may be repeated "
                             "(both of PyTorch)")
    parser.add_argument("--wheels", metavar="DIR",
                        help="wheels that were downloaded before")
    parser.add_argument("--needs", metavar="DIR",
                        help="where requirements.txt is installed already")
    parser.add_argument("--scratch", metavar="DIR",
                        help="where the environment is made (the system's)")
    a = parser.parse_args()
    a.engine = a.engine or [engine for engine in CASES if engine != ON_TOP]
    if len(set(map(project, a.engine))) > 1:
        parser.error("releases are of one project: PyTorch or DeepSpeed")
    with tempfile.TemporaryDirectory(dir=a.scratch) as scratch:
        python = a.needs or scratch
        if not a.needs and a.engine != [ON_TOP]:
            subprocess.run(pip("install", "--no-deps", "--target", python,
                               "--requirement",
                               os.path.join(HERE, "requirements.txt")),
                           check=True)
        for release in a.releases:
            one_release(a, release, python)


if __name__ == "__main__":
    main()

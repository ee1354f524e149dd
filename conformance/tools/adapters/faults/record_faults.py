# SPDX-License-Identifier: Apache-2.0
"""record_faults.py - the faults of faults.json, each played in a release of
PyTorch, or of DeepSpeed on the PyTorch of this Python: a file of this folder by
`fsdp-cts check`, or a case by an adapter.

Into KEEP/FAULT/RELEASE/ go the records. A release is downloaded, unpacked and
removed as releases/record_releases.py does it; INSTALLED is the PyTorch of this
Python. Of each release those faults are played that name it in faults.json, or
those that are named by --fault.

    python3 record_faults.py build/bin/fsdp-cts fixtures/faults 2.6.0 INSTALLED
    python3 record_faults.py build/bin/fsdp-cts fixtures/faults 0.19.3 \
        --project DeepSpeed
"""

import argparse
import glob
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ADAPTERS = os.path.dirname(HERE)
sys.path.insert(0, os.path.join(ADAPTERS, "releases"))
import record_releases as releases  # noqa: E402


def faults():
    with open(os.path.join(HERE, "faults.json"), encoding="utf-8") as f:
        return json.load(f)["faults"]


def play_check(a, fault, records, settings):
    """The records; what it comes to is for those who judge them."""
    done = subprocess.run(
        [a.cts, "check", os.path.join(HERE, fault["check"]), "--ranks", "2",
         "--timeout", "120", "--python", sys.executable, "--records", records],
        check=False, capture_output=True, text=True,
        env={**os.environ, **settings})
    if done.returncode not in (0, 1):
        raise releases.Failed(releases.last_line(done.stderr or done.stdout))
    return glob.glob(os.path.join(records, "*.json"))


def play_case(a, fault, records, settings):
    adapter, *options = shlex.split(fault["adapter"])
    given = [f"{name}={value}" for name, value in settings.items()]
    done = subprocess.run(
        [a.cts, "run", "--adapter",
         shlex.join(["env", *given, sys.executable,
                     os.path.join(ADAPTERS, adapter), *options]),
         "--case", fault["case"], "--records", records, "--partial-ok"],
        check=False, capture_output=True, text=True)
    if not glob.glob(os.path.join(records, "*.*", "case.json")):
        raise releases.Failed(releases.last_line(done.stderr or done.stdout))
    return [os.path.join(records, fault["case"])]


def keep(found, kept):
    shutil.rmtree(kept, ignore_errors=True)
    os.makedirs(kept)
    for path in found:
        into = os.path.join(kept, os.path.basename(path))
        (shutil.copytree if os.path.isdir(path) else shutil.copy)(path, into)


def one_release(a, release, settings, scratch):
    for name, fault in faults().items():
        if name not in (a.fault or [name]) or "kept" in fault or \
                fault.get("project", "PyTorch") != a.project or \
                release not in fault["releases"]:
            continue
        began = time.monotonic()
        play = play_check if "check" in fault else play_case
        records = os.path.join(scratch, f"records-{name}")
        try:
            keep(play(a, fault, records, settings),
                 os.path.join(a.keep, name, release))
            said = "recorded"
        except releases.Failed as error:
            said = str(error)
        print(f"{name} {release}: {said}, {time.monotonic() - began:.0f} s",
              flush=True)


def installed(a, release, scratch, python):
    """Its name, and what needs to be set to have it."""
    if a.project == "DeepSpeed":
        return release, releases.install_on_top(release, scratch)
    if release == "INSTALLED":
        import torch
        return torch.__version__.split("+")[0], {"OMP_NUM_THREADS": "1"}
    return release, releases.install(release, scratch, None, python)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cts", metavar="FSDP-CTS", type=os.path.abspath)
    parser.add_argument("keep", metavar="KEEP", type=os.path.abspath)
    parser.add_argument("releases", metavar="RELEASE", nargs="+")
    parser.add_argument("--fault", action="append", choices=sorted(faults()),
                        help="only this fault; may be repeated")
    parser.add_argument("--project", default="PyTorch",
                        choices=("PyTorch", "DeepSpeed"),
                        help="whose releases these are")
    parser.add_argument("--scratch", metavar="DIR",
                        help="where the environment is made (the system's)")
    a = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=a.scratch) as python:
        if a.project == "PyTorch" and a.releases != ["INSTALLED"]:
            releases.call("what all releases need", releases.pip(
                "install", "--no-deps", "--target", python, "--requirement",
                os.path.join(ADAPTERS, "releases", "requirements.txt")))
        for release in a.releases:
            with tempfile.TemporaryDirectory(dir=a.scratch) as scratch:
                try:
                    release, settings = installed(a, release, scratch, python)
                except (releases.Failed, OSError,
                        subprocess.CalledProcessError) as error:
                    print(f"{release}: {error}", flush=True)
                    continue
                for wheel in glob.glob(os.path.join(scratch, "*.whl")):
                    os.unlink(wheel)
                one_release(a, release, settings, scratch)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""sitecustomize.py - what Python imports as it starts, in a program that
`fsdp-cts probe --torch` has started: torch.distributed is looked at once the
program has it. A sitecustomize of the site's own, which this one hides, is run
behind it."""

import functools
import importlib.machinery
import importlib.util
import os
import sys

OURS = os.path.dirname(os.path.realpath(__file__))
WATCHED = "torch.distributed.distributed_c10d"


class Watch:
    """Finds the module that is watched, once, and runs it with a word after."""

    def find_spec(self, name, path=None, target=None):
        if name != WATCHED:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            self.loader, spec.loader = spec.loader, self
        return spec

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        module.__loader__ = module.__spec__.loader = self.loader
        self.loader.exec_module(module)
        watch_first_group(module)


def watch_first_group(c10d):
    """PyTorch is not whole while it imports the module; when the first group
    is made it is."""
    make = getattr(c10d, "_new_process_group_helper", None)
    if make is None:
        print("fsdp-cts probe: nothing is recorded: this torch.distributed is "
              "not known", file=sys.stderr)
        return

    @functools.wraps(make)
    def making(*arguments, **more):
        c10d._new_process_group_helper = make
        try:
            import fsdp_probe_torch
            fsdp_probe_torch.begin(c10d)
        except Exception as error:  # a probe never ends a program
            print(f"fsdp-cts probe: nothing is recorded: {error}",
                  file=sys.stderr)
        return make(*arguments, **more)

    c10d._new_process_group_helper = making


def run_hidden():
    """The sitecustomize that Python would have found without this one."""
    folders = [f for f in sys.path if os.path.realpath(f or ".") != OURS]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", folders)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


if os.environ.get("FSDP_PROBE_LOG"):
    sys.meta_path.insert(0, Watch())
run_hidden()

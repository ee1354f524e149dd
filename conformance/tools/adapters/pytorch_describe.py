#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pytorch_describe.py - describes a PyTorch model for `fsdp-cts plan`.

    pytorch_describe.py FILE.py:FUNCTION [--unit CLASS ...]
        [--checkpoint CLASS ...] [--attention CLASS=WIDTH ...] [--name NAME]
        [--out FILE]

FUNCTION takes nothing and gives a torch.nn.Module; or that and a tuple of
inputs, and then a forward is run to see in which order modules are called.
It is called under torch.device("meta"): nothing is allocated, so the model may
be of any size. Units are the modules of the classes that are named, and those
that fully_shard has sharded.

Work: a matrix of Linear counts two operations an element and token, an
embedding none; everything else that has matrices is an error until --flops
CLASS=N says what it does for a token.
"""

import argparse
import importlib.util
import json
import sys

import torch
from torch import nn

DTYPE = "f32"  # what rests; --param-dtype says in what it is gathered
MOST_NAME, MOST_CLASS = 95, 31
MIRROR = {"pre-forward": "post-backward", "post-forward": "pre-backward"}


def fail(text):
    sys.exit(f"pytorch_describe: {text}")


def load(what):
    """The function FUNCTION of FILE.py."""
    path, _, function = what.rpartition(":")
    if not path:
        fail(f"{what}: FILE.py:FUNCTION was expected")
    spec = importlib.util.spec_from_file_location("described", path)
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        return getattr(module, function)
    except (OSError, AttributeError) as error:
        fail(f"{what}: {error}")


def pairs(texts, option):
    """{"Class": number} of "Class=number"."""
    out = {}
    for text in texts:
        name, _, number = text.partition("=")
        if not number.isdigit():
            fail(f"{option} {text}: CLASS=NUMBER was expected")
        out[name] = int(number)
    return out


def flops_of(module, given):
    """Operations of the forward, a token; None: by the module's matrices."""
    kind = type(module).__name__
    own = list(module.parameters(recurse=False))
    if kind in given:
        return given[kind]
    if isinstance(module, (nn.Embedding, nn.EmbeddingBag)):
        return 0
    if isinstance(module, (nn.Linear, nn.MultiheadAttention)):
        # Counted here, as a tied weight is described once and used twice.
        return sum(2 * p.numel() for p in own if p.dim() >= 2)
    if any(p.dim() >= 2 for p in own):
        fail(f"what a {kind} does for a token is not known: "
             f"--flops {kind}=NUMBER")
    return None


def attention_of(module, given):
    """Heads times their width, of what attends."""
    if type(module).__name__ in given:
        return given[type(module).__name__]
    if isinstance(module, nn.MultiheadAttention):
        return module.embed_dim
    return 0


def is_unit(module, units):
    return (type(module).__name__ in units or
            type(module).__name__.startswith("FSDP"))


def describe_module(name, module, seen, options):
    """Parameters that were described before are left out: they are tied."""
    parameters = []
    for own, p in module.named_parameters(recurse=False):
        if p not in seen:
            seen.add(p)
            parameters.append(
                {"name": own, "dtype": DTYPE, "shape": list(p.shape)})
    if len(name) > MOST_NAME:
        fail(f"{name}: names of up to {MOST_NAME} characters were expected")
    return {"name": name, "class": type(module).__name__[:MOST_CLASS],
            "unit": is_unit(module, options.unit),
            "checkpoint": type(module).__name__ in options.checkpoint,
            "flops": flops_of(module, options.flops),
            "attention": attention_of(module, options.attention),
            "parameters": parameters}


def calls_of(model, inputs):
    """The order in which a forward calls modules, and the backward's, which
    is its mirror image."""
    calls = []
    hooks = []
    for name, module in model.named_modules():
        hooks.append(module.register_forward_pre_hook(
            lambda *_, name=name: calls.append(["pre-forward", name])))
        hooks.append(module.register_forward_hook(
            lambda *_, name=name: calls.append(["post-forward", name])))
    model(*inputs)
    for hook in hooks:
        hook.remove()
    return calls + [[MIRROR[point], name] for point, name in reversed(calls)]


def describe(model, inputs, options, source):
    seen = set()
    modules = [describe_module(name, module, seen, options)
               for name, module in model.named_modules()]
    return {"version": 1, "name": options.name or type(model).__name__,
            "source": source,
            "parts": [{"times": 1, "modules": modules}],
            "calls": calls_of(model, inputs) if inputs is not None else []}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("model", metavar="FILE.py:FUNCTION")
    parser.add_argument("--unit", action="append", default=[])
    parser.add_argument("--checkpoint", action="append", default=[])
    parser.add_argument("--attention", action="append", default=[])
    parser.add_argument("--flops", action="append", default=[])
    parser.add_argument("--name")
    parser.add_argument("--out")
    options = parser.parse_args()
    options.attention = pairs(options.attention, "--attention")
    options.flops = pairs(options.flops, "--flops")
    with torch.device("meta"):
        made = load(options.model)()
        model, inputs = made if isinstance(made, tuple) else (made, None)
        if not isinstance(model, nn.Module):
            fail(f"{options.model}: gave no torch.nn.Module")
        known = {type(m).__name__ for m in model.modules()}
        for name in (*options.unit, *options.checkpoint, *options.attention,
                     *options.flops):
            if name not in known:
                fail(f"the model has no {name}; it has "
                     f"{', '.join(sorted(known))}")
        said = describe(model, inputs, options,
                        f"torch {torch.__version__}: {options.model}"[-255:])
    text = json.dumps(said, indent=1) + "\n"
    if options.out:
        with open(options.out, "w", encoding="utf-8") as f:
            f.write(text)
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()

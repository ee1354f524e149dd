# SPDX-License-Identifier: Apache-2.0
"""dtype_faults.py - FSDP2 and FSDP1 that cast what no policy asks them to
cast, of what a unit is given and what it returns, or not what it asks for."""

import torch
from torch.utils import _pytree as pytree


def rounded(tree):
    """To bfloat16."""
    return pytree.tree_map_only(
        torch.Tensor,
        lambda t: t.bfloat16() if t.is_floating_point() else t, tree)


def inputs_cast(owner, method, unit_of):
    """What unit 1 is given: the method has its owner first and gives back
    positional and other arguments."""

    def plant():
        real = getattr(owner, method)

        def call(state, *args, **named):
            given, others = real(state, *args, **named)
            return (rounded(given) if unit_of(state) == 1 else given), others

        setattr(owner, method, call)

    return plant


def outputs_cast(owner, method):
    """What each unit returns, and the method gives back."""

    def plant():
        real = getattr(owner, method)
        setattr(owner, method,
                lambda *args, **named: rounded(real(*args, **named)))

    return plant


def casts_nothing(owner, given):
    """Whatever the policy says; `given` takes what the function that casts is
    called with, and has of it what that would have cast."""
    return lambda: setattr(owner, "_cast_forward_inputs", given)

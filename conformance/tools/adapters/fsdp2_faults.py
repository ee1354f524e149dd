# SPDX-License-Identifier: Apache-2.0
"""fsdp2_faults.py - FSDP2 that is wrong in what it holds, and in nothing else:
its values and its collectives stay as they are."""

import torch
from torch.distributed.fsdp._fully_shard._fsdp_param import FSDPParam
from torch.distributed.fsdp._fully_shard._fsdp_param_group import (
    FSDPParamGroup,
)
from torch.distributed.fsdp._fully_shard._fsdp_state import FSDPState

from dtype_faults import casts_nothing, inputs_cast, outputs_cast


def replace(owner, method, make):
    """`make` has the method as it was, and gives the one that is wrong."""
    setattr(owner, method, make(getattr(owner, method)))


def unit_kept():
    """Units are said to be resharded; of the first the storage stays."""

    def make(free):
        def call(param):
            if 0 not in param._module_info.module.index.values():
                free(param)

        return call

    replace(FSDPParam, "free_unsharded_param", make)


def copy_kept():
    """What was gathered in a pass is there twice until its end."""
    copies = []

    def keep(wait):
        def call(group):
            pending = group._all_gather_result is not None
            wait(group)
            if pending:
                copies.extend(t.clone() for p in group.fsdp_params
                              for t in p.all_gather_outputs)

        return call

    def drop(finalize):
        def call(group):
            finalize(group)
            copies.clear()

        return call

    replace(FSDPParamGroup, "wait_for_unshard", keep)
    replace(FSDPParamGroup, "finalize_backward", drop)


def gradients_kept():
    """Groups hold on to their whole gradients behind the reduction."""

    def make(take):
        def call(group):
            taken = take(group)
            group.kept = getattr(group, "kept", []) + taken[1]
            return taken

        return call

    replace(FSDPParamGroup, "_take_unsharded_grads_to_reduce", make)


def whole_kept():
    """The whole parameter that a shard was cut from stays beside it."""

    def make(init):
        def call(param, whole, *args, **kwargs):
            with torch.no_grad():
                param.whole = whole.detach().clone()
            return init(param, whole, *args, **kwargs)

        return call

    replace(FSDPParam, "_init_sharded_param", make)


def unit_of(state):
    groups = getattr(state, "_fsdp_param_groups", None) or \
        [getattr(state, "_fsdp_param_group", None)]
    return getattr(groups[0], "unit", None)


FAULTS = {"unit-kept": unit_kept, "copy-kept": copy_kept,
          "gradients-kept": gradients_kept, "whole-kept": whole_kept,
          "inputs-cast": inputs_cast(FSDPState, "_pre_forward", unit_of),
          "outputs-cast": outputs_cast(FSDPState, "_post_forward"),
          "casts-nothing": casts_nothing(FSDPState,
                                         lambda _, args, named: (args, named))}

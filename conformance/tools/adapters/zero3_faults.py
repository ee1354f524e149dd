# SPDX-License-Identifier: Apache-2.0
"""zero3_faults.py - DeepSpeed ZeRO-3 that is wrong in what it holds, and in
nothing else. As it is it has two copies of its shards, behind which nothing
else would be found; so here it has one, as its code means to
(shown/zero3_two_copies.py)."""

import torch
from deepspeed.runtime.zero.partition_parameters import Init, ZeroParamStatus
from deepspeed.runtime.zero.partitioned_param_coordinator import (
    PartitionedParameterCoordinator as Coordinator,
)
from deepspeed.runtime.zero.stage3 import (
    DeepSpeedZeroOptimizer_Stage3 as Stage3,
)

from flat_faults import around


def one_copy():
    """The device that it compares with is a device."""

    def turn(stage3):
        stage3.device = torch.device(stage3.device)

    def turn_back(stage3):
        stage3.device = str(stage3.device)

    around(Stage3, "_create_fp32_partitions", turn, turn_back)


def gathered(submodule):
    return [w for w in submodule.parameters(recurse=False)
            if w.ds_status == ZeroParamStatus.AVAILABLE]


def unit_kept():
    """Of the first unit what was gathered last stays."""

    def keep(coordinator, submodule, *_):
        for w in gathered(submodule):
            if w.unit == 0:
                coordinator.kept = w.data

    around(Coordinator, "release_sub_module", keep)


def gradients_kept():
    """Whole gradients stay behind their reduction."""
    kept = []

    def keep(_, w):
        if w.grad is not None:
            kept.append(w.grad.data)

    around(Stage3, "reduce_ready_partitions_and_remove_grads", keep)


def whole_kept():
    """The whole parameter that a shard was cut from stays beside it."""

    def keep(_, w):
        w.whole = w.data.clone()

    around(Init, "_zero_init_param", keep)


def with_one_copy(fault):
    def plant():
        one_copy()
        fault()

    return plant


FAULTS = {"one-copy": one_copy, "unit-kept": with_one_copy(unit_kept),
          "gradients-kept": with_one_copy(gradients_kept),
          "whole-kept": with_one_copy(whole_kept)}

# SPDX-License-Identifier: Apache-2.0
"""zero_plain.py - what the models of DeepSpeed beside it share: on a CPU it
wants these settings."""

import os

os.environ["DS_ACCELERATOR"] = "cpu"

import deepspeed


def sharded(model, optimizer, **zero):
    """`zero`: what it is asked for besides."""
    config = {"train_micro_batch_size_per_gpu": 3, "gradient_clipping": 0.0,
              "zero_allow_untested_optimizer": True,
              "zero_force_ds_cpu_optimizer": False, "zero_optimization": zero}
    return deepspeed.initialize(model=model, optimizer=optimizer(model),
                                config=config)[0]

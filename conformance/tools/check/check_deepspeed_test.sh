#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# check_deepspeed_test.sh - DeepSpeed's engine under `fsdp-cts check`: what is
# right is found right, and a fault of testing/planted_deepspeed.py by the
# requirement and the parameter that one would name; what cannot be judged is
# said in a line.
#
# usage: check_deepspeed_test.sh FSDP-CTS [FAULT...]; skips where python3, or
# FSDP_PYTHON, has no torch or no deepspeed.
set -uo pipefail
# shellcheck source=conformance/tools/check/check_testing.sh
. "$(dirname "${BASH_SOURCE[0]}")/check_testing.sh"
needs deepspeed

shift
only=" $* " planted_in=$here/testing/planted_deepspeed.py

chosen='parameter inner.1.0.weight'
planted zero3-nothing 0 'under zero3, 2 ranks'
imported_once deepspeed
planted zero2-nothing 0 'under zero2, 2 ranks'
planted zero1-nothing 0 'under zero1, 2 ranks'
planted zero3-frozen 0 own.frozen-still
planted zero3-divisor 1 "FAIL     own.reduced: step 0, rank 0, $chosen, element 0: reduced to"
planted zero2-divisor 1 'FAIL     own.reduced: step 0, rank 0, parameter table.weight, element 0: reduced to'
planted zero3-skips 1 "FAIL     own.step: step 0, rank 0, $chosen, element 0"
planted zero2-skips 1 "FAIL     own.step: step 0, rank 1, $chosen, element 0"
planted zero3-stale 1 "FAIL     own.unsharded: step 0, rank 1, $chosen, element 0"
planted zero3-clips 1 'Look first at own.step:'
planted zero3-moves 1 'FAIL     own.frozen-still: step 0, rank 0, parameter inner.0.0.weight'
planted zero3-partly 1 'parameter norm.weight: the optimizer that deepspeed.initialize was given does not have it'
planted zero3-untied 1 'parameter head.weight: the optimizer that deepspeed.initialize was given does not have it'
planted zero3-draws 1 'FAIL     own.random-state: step 0, rank 1'
planted zero3-alone 1 'FAIL     own.order: step 0, rank 1'
planted zero3-momentless 1 "FAIL     own.saved-states: step 1, rank 0, parameter table.weight: optimizer's state exp_avg: it was saved, and is not loaded"
planted zero3-loadless 1 'FAIL     own.saved-weights: step 1, rank 0, parameter table.weight'
planted zero1-loadless 1 'FAIL     own.saved-weights: step 1, rank 0, parameter table.weight'
planted zero3-microbatches 1 'DeepSpeed reduces in each microbatch'
planted zero3-accumulates 1 "DeepSpeed's gradient_accumulation_steps are 2: 1 can be judged"
planted zero3-bf16 1 'DeepSpeed can be judged in float32'
planted zero2-frozen 1 'DeepSpeed leaves frozen parameters whole in stages 1 and 2'

finish "$([ "$only" = '  ' ] && echo 22 || echo 1)"

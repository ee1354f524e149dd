#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# check_planted_test.sh - a model of one's own that is wrong in one way, as
# testing/planted.py says: the fault is found, by the requirement that one would
# name, and by unit and parameter; a file that cannot be played is refused in
# one line.
#
# usage: check_planted_test.sh FSDP-CTS [FAULT...]; skips where python3, or
# FSDP_PYTHON, has no torch.
set -uo pipefail
# shellcheck source=conformance/tools/check/check_testing.sh
. "$(dirname "${BASH_SOURCE[0]}")/check_testing.sh"

shift
only=" $* " planted_in=$here/testing/planted.py

planted nothing 0 CONFORMANT
imported_once
planted three-ranks 0 CONFORMANT --ranks 3
planted lora 0 own.frozen-still
planted microbatches 0 'of 3 microbatches'
planted bf16 0 'computed in bf16, reduced in f32'
planted bf16-microbatches 0 'of 3 microbatches, computed in bf16'
planted fsdp1-bf16-microbatches 0 'of 3 microbatches, computed in bf16'
planted bf16-both 0 'computed in bf16, reduced in bf16'
planted reduce-bf16 0 'computed in f32, reduced in bf16'
planted ddp 0 'under ddp'
planted expert 0 CONFORMANT
planted expert-forgotten 1 'rank 1 has no gradient of inner.1.0.weight and 3 more, rank 0 has: all have to use it, or call set_reduce_scatter_unused_params(True)'
planted expert-unit 1 ': all ranks have to call the same units' --timeout 60
planted one-never-synced 1 ', and reduce in the same passes' --timeout 60
planted never-synced 1 'Look first at own.reductions:'
planted bf16-never-synced 1 'Look first at own.reductions:'
planted ddp-never-synced 1 "which is this rank's own gradient"
planted fsdp1-never-synced 1 'are not synchronized'
planted divisor 1 'FAIL     own.reduced: step 0, rank 0, unit inner.1, parameter inner.1.0.weight, element 0: reduced to'
planted forgotten 1 'FAIL     own.layout: parameter table.weight: it is in no unit'
planted untied 1 'FAIL     own.tied: rank 0: head.weight is table.weight too in the unsharded model'
planted optimizer-first 1 'FAIL     own.optimizer-holds: rank 0, unit (root), parameter table.weight: the optimizer does not have it'
planted draws-on-one 1 'FAIL     own.random-state: step 0, rank 1: the pass begins with another random state'
planted same-batch 1 'FAIL     own.batches-differ: step 0, rank 1: its batch is that of rank 0'
planted batch-by-world 1 'Look first at own.batches:'
planted frozen-moves 1 'FAIL     own.frozen-still: step 0, rank 0, unit inner.0, parameter inner.0.0.weight'
planted bf16-reduce 1 'FAIL     own.wire: step 0, rank 0, unit inner.1: reduce-scatter in bf16, f32 was asked for'
planted buffer-cast 1 'FAIL     own.buffers: step 0, rank 0: buffer scale has other values'
planted moments-lost 1 "FAIL     own.saved-states: step 1, rank 0, unit (root), parameter table.weight: optimizer's state exp_avg: it was saved, and is not loaded"
planted other-weights 1 'FAIL     own.initial: step 0, rank 1, unit (root), parameter norm.bias'
planted learning-rate 1 'Look first at own.step:'
planted kept-whole 1 'FAIL     own.memory: step 0, rank 0, unit inner.0: '
planted gathers 1 'FAIL     own.gathers: step 0, rank 0, unit inner.0'

# What a file's own hooks do: evaluations in the optimizer's step, several
# forwards in a pass, casts, recomputation.
planted evaluates 0 own.evaluated
planted evaluates-in-step 0 own.evaluated
planted evaluates-resharded 0 own.evaluated
planted evaluates-before 1 'FAIL     own.unsharded: step 1, rank 0, unit (root)'
planted evaluates-around 1 'FAIL     own.evaluated: step 0, rank 0, unit (root)'
planted evaluates-on-ranks 1 "gathered 1 times in the evaluations of the optimizer's step, 0 expected"
planted moves-buffer 1 "the optimizer's step changes buffer scale"
planted learns 0 own.evaluated
planted schedule 0 CONFORMANT
planted groups 0 CONFORMANT
planted one-rate 1 'Look first at own.step:'
planted clips 0 CONFORMANT
planted clips-alone 1 'Look first at own.step:'
planted doubles 1 'FAIL     own.local-grad: step 0, rank 0, unit inner.1, parameter inner.1.0.weight'
planted fsdp1-doubles 1 'FAIL     own.local-grad: step 0, rank 0, unit inner.1, parameter inner.1.0.weight'
planted twice 0 CONFORMANT
planted looks 0 CONFORMANT
planted autocast 0 CONFORMANT
planted recompute 0 CONFORMANT
planted reentrant 0 CONFORMANT
planted fsdp1-evaluates 0 own.evaluated
planted fsdp1-evaluates-before 1 'FAIL     own.unsharded: step 1, rank 0, unit (root)'
planted fsdp1-twice 0 CONFORMANT

# The same under FSDP1, with use_orig_params and, where it says flat, without.
planted fsdp1-nothing 0 'under fsdp1, 2 ranks'
planted fsdp1-flat 0 'under fsdp1-flat, 2 ranks'
planted fsdp1-three-ranks 0 CONFORMANT --ranks 3
planted fsdp1-lora 0 own.frozen-still
planted fsdp1-microbatches 0 'of 3 microbatches'
planted fsdp1-bf16 0 'computed in bf16, reduced in f32'
planted fsdp1-divisor 1 'FAIL     own.reduced: step 0, rank 0, unit inner.1, parameter inner.1.0.weight, element 0: reduced to'
planted fsdp1-forgotten 1 'parameter table.weight: it is in no unit: each rank has all of it, and nobody reduces its gradient; no FullyShardedDataParallel is around it'
planted fsdp1-optimizer-first 1 'FAIL     own.optimizer-holds: rank 0, unit (root), parameter table.weight: the optimizer does not have it'
planted fsdp1-kept-whole 1 'FAIL     own.memory: step 0, rank 0, unit inner.0: '

# What cannot be played, and ranks that do not come to their end.
planted no-function 65 'has no function loss(model, batch)'
planted import-fails 65 'while it was imported: RuntimeError: planted here'
planted import-exits 65 'while it was imported: SystemExit: 3'
planted import-hangs 65 'while it was imported: TimeoutError: no end after 20 seconds' --timeout 20
planted killed-alone 65 'in loss(), in inner.0.3: it ended the process: signal 9 (SIGKILL), perhaps for want of memory'
planted hangs-alone 65 'in loss(), in inner.0.3: no end after 60 seconds' --timeout 60
planted no-scalar 65 'not a scalar'
planted no-tensor 65 'loss() returned float, not a tensor'
planted no-gradient 65 'needs no gradient'
planted calls-backward 65 'loss() has called backward()'
planted wants-closure 65 'the step of LBFGS wants a closure'
planted model-differs 65 'model() makes another table.weight each time'
planted batch-differs 65 'batch(0, 0, 0) is another one each time'
planted unwrapped 1 'neither fully_shard nor FullyShardedDataParallel nor DistributedDataParallel, and no DeepSpeedEngine'
planted no-module 1 'raised: in shard(): shard() returned str, not a torch Module'
planted no-optimizer 65 'optimizer() returned NoneType, not a torch Optimizer'
planted raises 1 'own.completes: rank 1 raised: step 0, microbatch 0, forward, in inner.0.3: ValueError: planted here'
planted killed 1 'own.completes: rank 1 signalled: step 0, microbatch 0, forward, in inner.0.3: signal 9 (SIGKILL)'
planted hangs 1 'own.completes: rank 1 hung: step 0, microbatch 0, forward, in inner.0.3: no end after' --timeout 60

finish "$([ "$only" = '  ' ] && echo 81 || echo 1)"

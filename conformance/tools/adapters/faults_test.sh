#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# faults_test.sh - engines from elsewhere that are wrong in one way, by a flag
# of their adapters: each is found, by the requirement that one would name, and
# by no other, but for the memory that it takes by being so, and for what fails
# of the engine as it is: FSDP1 frees no model (docs/results.md).
#
# usage: faults_test.sh FSDP-CTS PYTHON
set -uo pipefail

# shellcheck source=conformance/tools/adapters/adapter_testing.sh
. "$(dirname "${BASH_SOURCE[0]}")/adapter_testing.sh"
python=$2

# What must fail, and nothing else.
expect() # ADAPTER FAULT CASE REQUIREMENT
{
    local got

    rm -rf "$folder/report" "$folder/records"
    "$cts" run --adapter "$python $here/$1.py --fault $2" --case "$3" \
        --partial-ok --quiet --records "$folder/records" \
        --report "$folder/report" >"$folder/out" 2>&1
    got=$(outcomes 'fail\|error\|timeout' "$folder/report" |
        if [ "$1" = pytorch_fsdp1 ]; then
            grep -vx 'run.leaves-nothing'
        else
            cat
        fi | paste -sd' ')
    result "$1 $2: $got" "$(
        [ "$got" = "$4" ] || echo "not '$4': $(tail -n 3 "$folder/out")")"
}

for model in mlp gpt; do
    plain=$model.odd.natural.full-shard.k3
    for layout in per-parameter flat; do
        engine=pytorch_fsdp2
        [ $layout = flat ] && engine=pytorch_fsdp1
        late=$plain.$layout.layer.rank.ns.momentum
        once=$late
        [ $model = mlp ] && once=$plain.$layout.layer.rank.ss.adamw
        expect $engine no-average "$late" reduce.scale
        expect $engine same-batch "$once" grad.distinct
        expect $engine no-sync-ignored "$late" \
            'accumulate.no-sync comm.reduce-scatter-count'
        expect $engine bf16-reduce "$late" accumulate.no-sync
        expect $engine no-reshard "$once" \
            'comm.all-gather-count memory.prefetch-bound'
        expect $engine stale-weight "$late" \
            'gather.sees-updated-weights memory.no-activations-by-engine'
    done
    late=$model.odd.natural.no-shard.k3.flat.layer.rank.ns
    [ $model = mlp ] && late=$late.sgd || late=$late.adamw
    expect pytorch_ddp no-average "$late" reduce.scale
    expect pytorch_ddp same-batch "$late" grad.distinct
    expect pytorch_ddp no-sync-ignored "$late" \
        'accumulate.no-sync comm.all-reduce-count'
    expect pytorch_ddp bf16-reduce "$late" accumulate.no-sync
done

finish 32

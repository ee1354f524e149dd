#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# memory_test.sh - what an implementation holds is measured, and one that holds
# more is found by the requirement that says so, and by no other. Skips (77)
# where Python has it not: FSDP_PYTHON names one that has.
#
# usage: memory_test.sh FSDP-CTS ENGINE
# ENGINE: pytorch_fsdp2, pytorch_fsdp1, fairscale_fsdp or deepspeed_zero3
set -uo pipefail

# shellcheck source=conformance/tools/adapters/adapter_testing.sh
. "$(dirname "${BASH_SOURCE[0]}")/adapter_testing.sh"
engine=$2

# What fails as it is (docs/results.md), what bounds its peaks, what finds a copy
# that is kept (if anything does), and cases: as it is, for a unit that is kept,
# and without a second life.
layout=flat
known=run.leaves-nothing
bound=memory.prefetch-bound
copies=memory.prefetch-bound
once=k3.flat.layer.rank.s.sgd
as_it_is=k2.$layout.layer.rank.ns.momentum
unit=k3.$layout.layer.rank.ns.momentum
case $engine in
pytorch_fsdp2)
    layout=per-parameter
    known=
    once=k2.per-parameter.layer.rank.s.sgd.again
    as_it_is=${as_it_is/flat/$layout}
    unit=${unit/flat/$layout}
    ;;
pytorch_fsdp1) ;;
fairscale_fsdp)
    known='memory.peak-gradients run.leaves-nothing'
    bound=memory.peak-bound
    copies=memory.peak-unsharded
    ;;
deepspeed_zero3)
    known='comm.nothing-else run.leaves-nothing'
    bound=memory.rest-after-step # it claims no bounds of peaks
    copies=
    as_it_is=k2.flat.layer.rank.ss.adamw
    unit=k3.flat.layer.rank.s.momentum
    ;;
*) no_engine ;;
esac
needs_engine "$engine"

# Each fault in a case of its own, so that PyTorch is imported once for all.
plain=mlp.odd.natural.full-shard
end=$layout.layer.rank
as_it_is=$plain.$as_it_is
fault=("unit-kept@$plain.$unit"
    "gradients-kept@$plain.k3.$end.ss.adamw"
    "whole-kept@$plain.$once")
want=(memory.rest-after-step memory.rest-after-step memory.rest-after-shard)
adapter="$python $here/$engine.py"
if [ -n "$copies" ]; then
    fault+=("copy-kept@$plain.k2.$end.ss.adamw")
    want+=("$copies")
else # ZeRO-3 as it means to be: as it is nothing else would be found
    adapter="$adapter --fault one-copy@$as_it_is"
fi
cases=$as_it_is
for f in "${fault[@]}"; do
    adapter="$adapter --fault $f"
    cases=$cases,${f#*@}
done
"$cts" run --adapter "$adapter" --case "$cases" --partial-ok --quiet \
    --report "$folder/report" >"$folder/out" 2>&1

# expect WHAT CASE OUTCOME REQUIREMENT: that has it there, and nothing else fails
# but what fails as it is.
expect()
{
    local failed others

    failed=$(failing "$folder/report" "$2")
    others=$(grep -vxF "$(printf '%s\n' "$4" $known)" <<<"$failed")
    if [ -z "$others" ] && outcomes "$3" "$folder/report" "$2" | grep -qx "$4"; then
        echo "$1: $4: $3"
    else
        bad=1
        echo "FAIL $1: found '$(paste -sd' ' <<<"$failed")'; not $4: $3"
        tail -n 3 "$folder/out"
    fi
}

expect 'as it is' "$as_it_is" pass "$bound"
for i in "${!fault[@]}"; do
    expect "${fault[i]%@*}" "${fault[i]#*@}" fail "${want[i]}"
done
exit $bad

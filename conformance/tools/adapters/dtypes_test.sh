#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# dtypes_test.sh - what comes into units and leaves them has the dtype that the
# policy says, whatever it says; and an implementation that casts what nobody
# asked for is found by the requirement that says so, and by no other. Skips
# (77) where Python has it not: FSDP_PYTHON names one that has.
#
# usage: dtypes_test.sh FSDP-CTS ENGINE
# ENGINE: pytorch_fsdp2 or pytorch_fsdp1
set -uo pipefail

# shellcheck source=conformance/tools/adapters/adapter_testing.sh
. "$(dirname "${BASH_SOURCE[0]}")/adapter_testing.sh"
engine=$2

# What fails as it is (docs/results.md), and what it can cast.
begin=linear.small.exact16
case $engine in
pytorch_fsdp2)
    known=nothing
    both='--cast inputs --cast outputs'
    cases="$begin.full-shard.k2.per-parameter.layer.rank.nns.sgd.bf16"
    more="$begin.full-shard.k4.per-parameter.layer.rank.ns.sgd.units"
    ;;
pytorch_fsdp1)
    known=run.leaves-nothing
    both='--cast inputs'
    cases="$begin.full-shard.k2.flat.layer.rank.nns.sgd.bf16a"
    more="$begin.full-shard.k4.flat.pair.rank.sns.sgd.bf16r"
    ;;
*) no_engine ;;
esac
needs_engine "$engine"

# expect OPTIONS CASES WORD: the requirement has that outcome in each of them,
# and nothing else fails but what fails as it is.
expect()
{
    local n others

    "$cts" run --adapter "$python $here/$engine.py $1" --case "$2" \
        --partial-ok --quiet --report "$folder/report" >"$folder/out" 2>&1
    n=$(grep -c '"requirement":"mixed.dtypes-at-points".*"outcome":"'"$3"'"' \
        "$folder/report")
    others=$(failing "$folder/report" |
        grep -vx "mixed.dtypes-at-points\|$known" | paste -sd' ')
    if [ "$n" = "$(tr ',' '\n' <<<"$2" | wc -l)" ] && [ -z "$others" ]; then
        echo "${1:-as it is}: $3"
    else
        bad=1
        echo "FAIL ${1:-as it is}: $n of $2: $3; others: '$others'"
        tail -n 3 "$folder/out"
    fi
}

expect '' "$cases,$more" pass
expect '--cast inputs' "$cases" pass
expect "$both" "$more" pass
expect '--fault inputs-cast' "$cases" fail
expect '--fault outputs-cast' "$cases" fail
# Claimed, and not done: of a policy that is not kept.
expect "--cast inputs --fault casts-nothing" "$cases" fail
exit $bad

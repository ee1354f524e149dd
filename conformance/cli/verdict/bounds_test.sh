#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# bounds_test.sh - what the bounds for an arithmetic of another kind let
# through, and what not: the same engine, summing in other orders and widths,
# is within them by far; what is mistaken for float32 is beyond them by far.
# docs/interpreting.md has these numbers (--print shows them).
#
# usage: bounds_test.sh FSDP-CTS [INCLUDE-FOLDER | --print]
set -uo pipefail

# shellcheck source=conformance/cli/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/../checks.sh"
tests=$(dirname "$cts")/../tests
print=${2-}

mlp=mlp.odd.natural.full-shard.k3.flat.layer.rank.s.sgd
long=mlp.seed.natural.full-shard.k3.flat.layer.rank.s.sgd.steps40
gpt=gpt.odd.natural.full-shard.k3.flat.block.rank.s.sgd
cases="$mlp $long $gpt"

# Runs the cases; leaves the greatest ratios in $folder/ratio.
measure() # NAME, run's options
{
    local name=$1

    shift
    "$cts" run "$@" --case "${cases// /,}" --record-only --quiet \
        --records "$folder/$name" >"$folder/out" 2>&1 ||
        { result "$name" "$(cat "$folder/out")"; return; }
    # shellcheck disable=SC2086 # a list
    "$tests/bounds_ratio" "$folder/$name" $cases >"$folder/ratio" 2>&1 ||
        result "$name" "$(cat "$folder/ratio")"
    if [ "$print" = --print ]; then
        echo "$name: $(tr '\n' ' ' <"$folder/ratio")"
    fi
}

ratio() # REQUIREMENT
{
    awk -v id="$1" '$1 == id { print $2 }' "$folder/ratio"
}

# REQUIREMENT is more than LEAST (-: anything) and at most MOST (-: anything).
between() # WHAT REQUIREMENT LEAST MOST
{
    result "$1: $2" "$(awk -v id="$2" -v least="$3" -v most="$4" '
        $1 == id { n++
            bad = (least != "-" && !($2 > least + 0)) ||
                (most != "-" && !($2 <= most + 0))
        }
        END { if (n != 1 || bad) print "not between " least " and " most }
        ' "$folder/ratio")$([ -s "$folder/ratio" ] || echo none)"
}

# Says that the records are of an adapter that claims no bits, and judges.
judge() # NAME
{
    local id claims='"flat", "full-shard", "sgd", "fold-rank", "wrap-layer"'

    claims+=', "workload-mlp", "workload-gpt", "reshard-root", "wrap-block"'
    for id in $cases; do
        tr -d '\n' <"$folder/$1/$id/case.json" | sed '
            s/"world": "local"/"world": "adapter"/
            s/"claims": \[[^]]*\]/"claims": ['"$claims"']/
            ' >"$folder/case" &&
            mv "$folder/case" "$folder/$1/$id/case.json"
    done
    "$cts" verify "$folder/$1" --case "${cases// /,}" --partial-ok --quiet \
        --report "$folder/report" >"$folder/out" 2>&1
    code=$?
    sed -n 's/.*"requirement":"\([^"]*\)".*"outcome":"\(fail\|error\)".*/\1/p' \
        "$folder/report" | sort -u | tr '\n' ' ' >"$folder/fails"
}

# ---- As good as the suite's: far within ----
for kind in double reversed unfused pairwise lanes; do
    FSDP_ARITHMETIC=$kind measure $kind --engine "$tests/arithmetic.so"
    between $kind grad.bound 0 0.05
    between $kind num.curve-bound 0 0.05
    between $kind step.final-bound 0 0.05
    between $kind step.bound 0 1
    judge $kind
    result "$kind passes" "$([ $code = 0 ] || cat "$folder/out" \
        "$folder/fails")"
done

# ---- Mistaken for float32: beyond, and by which requirement ----
for kind in tf32 bf16 bf16-sum; do
    FSDP_ARITHMETIC=$kind measure $kind --engine "$tests/arithmetic.so"
    between $kind grad.bound 5 -
    judge $kind
    result "$kind fails" "$([ "$code" = 1 ] &&
        [ "$(cat "$folder/fails")" = 'grad.bound ' ] ||
        echo "exit $code: $(cat "$folder/fails")")"
done

# ---- What goes wrong between the gradients and the weights ----
for mutant in no-average divide-twice reduce-missing; do
    measure $mutant --engine ref --mutant $mutant
    between $mutant grad.bound - 1
    between $mutant num.curve-bound 10 -
    between $mutant step.final-bound 5 -
    judge $mutant
    result "$mutant fails" "$([ "$code" = 1 ] && grep -q 'reduce\.' \
        "$folder/fails" || echo "exit $code: $(cat "$folder/fails")")"
done
# Rounding once to bf16 is small beside the sums: the bounds of what follows
# do not see it for sure, and the fold, which is asked bit for bit, does.
measure bf16-reduce --engine ref --mutant bf16-reduce
between bf16-reduce num.curve-bound 0.01 1
judge bf16-reduce
result 'bf16-reduce fails' "$([ "$code" = 1 ] &&
    [ "$(cat "$folder/fails")" = 'reduce.fold ' ] ||
    echo "exit $code: $(cat "$folder/fails")")"

FSDP_ARITHMETIC=none "$cts" run --engine "$tests/arithmetic.so" --case $mlp \
    --record-only --quiet >"$folder/out" 2>&1
"$tests/bounds_ratio" "$folder/nonesuch" $mlp >"$folder/ratio" 2>&1
result 'no records have no ratio' "$([ $? = 65 ] || cat "$folder/ratio")"

finish 31

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# adapter_test.sh - engines outside of the suite. The adapter is a script that
# plays its cases with an engine of the suite and says that the records are its
# own: so the same engine, right or wrong in one way, is judged with bits, with
# bounds, and with a fold in any order, and what must be found is found.
#
# FSDP_ADAPTER_TEST=short: a right engine, and adapters that break; for builds in
# which it takes three times as long, and which have other tests of the judge.
#
# usage: adapter_test.sh FSDP-CTS [INCLUDE-FOLDER]
set -uo pipefail

# shellcheck source=conformance/cli/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/../checks.sh"

# MUTANT (or nothing) and CLAIMS in its environment; HOW: what else is wrong.
cat >"$folder/adapter" <<'END'
#!/usr/bin/env bash
set -euo pipefail
job=$2
claims='"workload-mlp", "workload-linear", "wrap-layer", "wrap-whole",
 "flat", "full-shard", "no-shard", "hybrid-shard", "sgd", "momentum", "adamw",
 "no-sync", "eval", "again", "reshard-root", "divide-factor", '$CLAIMS
if [ "$1" = claims ]; then
    case $HOW in
    no-claims) exit 3 ;;
    bad-claims) echo '{"version": 1, "claims": 7}' >"$job/claims.json" ;;
    *) printf '{"version": 1, "engine": "elsewhere", "engine_version": "1",
 "claims": [%s]}' "$claims" >"$job/claims.json" ;;
    esac
    exit 0
fi
records=$(sed -n 's/^ "records": "\(.*\)",$/\1/p' "$job/cases.json")
own=$(mktemp -d)
trap 'rm -rf "$own"' EXIT
n=0
while read -r id; do
    n=$((n + 1))
    if [ "$HOW" = crash ] && [ $n = 2 ]; then
        echo 'the adapter is about to die'
        kill -SEGV $$
    fi
    if [ "$HOW" = hang ] && [ $n = 2 ]; then
        sleep 600
    fi
    [ "$HOW" = leaves-out ] && [ $n = 2 ] && continue
    for file in case.json weights.safetensors batches.safetensors; do
        [ -s "$job/$id/$file" ] || exit 4
    done
    "$CTS" run --engine ref ${MUTANT:+--mutant $MUTANT} --case "$id" \
        --record-only --quiet --records "$own" >/dev/null || true
    mkdir -p "$records/$id"
    cp "$own/$id"/rank-* "$records/$id/"
    tr -d '\n' <"$own/$id/case.json" | sed '
        s/"engine": "[^"]*"/"engine": "elsewhere"/
        s/"engine_version": "[^"]*"/"engine_version": "1"/
        s/"world": "local"/"world": "adapter"/
        s/"claims": \[[^]]*\]/"claims": ['"$(tr -d '\n' <<<"$claims")"']/
        ' >"$records/$id/case.json.partial"
    if [ "$HOW" = last-step ]; then # the sign of the first final weight
        file="$records/$id/rank-0.safetensors"
        header=$(od -An -tu8 -N8 "$file" | tr -d ' ')
        at=$(head -c $((8 + header)) "$file" | tail -c "$header" |
            LC_ALL=C sed -n 's/.*"final[^{]*{[^}]*"data_offsets":\[\([0-9]*\),.*/\1/p')
        printf '\100' | dd of="$file" bs=1 seek=$((8 + header + at + 3)) \
            conv=notrunc 2>/dev/null
    fi
    mv "$records/$id/case.json.partial" "$records/$id/case.json"
done < <(sed -n 's/^  "\([^"]*\)".*/\1/p' "$job/cases.json")
END
chmod +x "$folder/adapter"

# Two plain cases, one that accumulates, an exact one, one of another optimizer.
cases=$("$cts" list cases | awk '
    /^mlp\.seed\.natural\.full-shard\.k3\.flat\.layer\.rank\.s\.sgd\.steps40$/ ||
    /^mlp\.odd\.natural\.full-shard\.k4\.flat\.layer\.rank\.ns\.momentum$/ ||
    /^mlp\.odd\.natural\.full-shard\.k3\.flat\.layer\.rank\.ss\.adamw$/ ||
    /^mlp\.odd\.natural\.full-shard\.k2\.flat\.layer\.rank\.s\.sgd\.eval$/ ||
    /^linear\.small\.exact\.full-shard\.k4\.flat\.layer\.rank\.ns\.sgd$/ {
        printf "%s%s", (n++ ? "," : ""), $0
    }')
result 'the selection' "$([ "$(tr ',' '\n' <<<"$cases" | wc -l)" = 5 ] ||
    echo "$cases")"

# Judges; prints the requirements that failed, sorted, in one line.
judge() # CLAIMS MUTANT HOW [OPTION ...]
{
    local claims=$1 mutant=$2 how=$3
    shift 3
    CTS=$cts CLAIMS=$claims MUTANT=$mutant HOW=$how \
        "$cts" run --adapter "$folder/adapter" --case "$cases" --partial-ok \
        --records "$folder/records" --report "$folder/report" "$@" \
        >"$folder/out" 2>"$folder/err"
    code=$?
    sed -n 's/.*"requirement":"\([^"]*\)".*"outcome":"\(fail\|error\|timeout\)".*/\1/p
        ' "$folder/report" 2>/dev/null | sort -u | tr '\n' ' '
}

expect() # WHAT WANTED-CODE WANTED-FAILURES CLAIMS MUTANT [HOW]
{
    local got

    rm -rf "$folder/records" "$folder/report"
    judge "$4" "$5" "${6-}" >"$folder/failures"
    got=$(sed 's/ $//' "$folder/failures")
    result "$1" "$([ "$code" = "$2" ] && [ "$got" = "$3" ] ||
        echo "exit $code, failed: '$got', not '$3': $(tail -n 3 "$folder/err" \
            "$folder/out" | tr '\n' ' ')")"
}

bits='"f32-fma", "fold-rank"'
own='"fold-rank"'
any='"fold-any"'

expect 'bits' 0 '' "$bits" ''
expect 'an arithmetic of its own' 0 '' "$own" ''
expect 'any order' 0 '' "$any, \"reshard-rot\"" ''
result 'a claim that is none' "$(grep -q "claims 'reshard-rot'" "$folder/err" &&
    grep -q "not tested: 'reshard-rot'" "$folder/out" ||
    tail -n 4 "$folder/err" "$folder/out")"
result 'it says how much less that is' "$(grep -q 'place of bits; not shown: live-bytes' "$folder/out" || tail -n 3 "$folder/out")"
judge_wrong_engines()
{
    # The same engine is not the suite's to the bit, but within its bounds.
    expect 'an optimizer that is not fused: bits' 1 \
        'step.sgd' "$bits" sgd-without-fma
    expect 'an optimizer that is not fused: bounds' 0 '' "$own" sgd-without-fma
    expect 'a product before the fold: bits' 1 \
        'accumulate.synced reduce.fold' "$bits" divide-before-reduce
    expect 'a product before the fold: any order' 0 '' "$any" divide-before-reduce
    # What is wrong in any arithmetic.
    expect 'no average' 1 'reduce.scale' "$any" no-average
    expect 'divided twice' 1 'reduce.fold reduce.scale' "$any" divide-twice
    expect 'reduced in bf16' 1 'accumulate.no-sync accumulate.synced reduce.fold' \
        "$any" bf16-reduce
    expect 'one bit of one rank' 1 'accumulate.no-sync reduce.fold' "$own" \
        hostile-one-rank-wrong
    expect 'a backward with stale weights' 1 'grad.bound' "$own" backward-stale
    expect 'weight decay of the wrong sign' 0 '' "$own" decay-sign
    expect 'a step by the world' 1 'step.bound step.sgd' "$own" lr-by-world
    expect 'a momentum that is lost' 1 'step.bound' "$own" momentum-lost
    expect 'a fault behind the recorded steps' 1 'num.curve num.curve-bound' \
        "$own" late-fault
    expect 'a last step that nobody sees' 1 'step.final-bound step.final-weights' \
        "$own" '' last-step
    expect 'a gather of stale weights' 1 'gather.sees-updated-weights' "$any" \
        gather-stale
    expect 'no reshard' 1 'comm.all-gather-count' "$any" no-reshard
}
[ "${FSDP_ADAPTER_TEST-}" = short ] || judge_wrong_engines

# An adapter that is none, or breaks.
rm -f "$folder/report"
judge "$any" '' no-claims >/dev/null
result 'no claims' "$([ $code = 64 ] &&
    grep -q 'failed and wrote no JOB/claims.json' "$folder/err" ||
    echo "exit $code: $(cat "$folder/err")")"
judge "$any" '' bad-claims >/dev/null
result 'bad claims' "$([ $code = 64 ] && grep -q 'claims.json' "$folder/err" ||
    echo "exit $code: $(cat "$folder/err")")"
expect 'a crash' 1 'run.survives' "$any" '' crash
result 'its output is shown' "$(grep -q 'about to die' "$folder/err" ||
    cat "$folder/err")"
expect 'a case left out' 2 '' "$any" '' leaves-out
rm -rf "$folder/records"
judge "$any" '' hang --timeout 1 >"$folder/failures"
result 'a hang' "$([ $code = 1 ] && grep -q run.survives "$folder/failures" ||
    echo "exit $code: $(cat "$folder/failures")")"
CTS=$cts CLAIMS=$any HOW='' "$cts" run --adapter "$folder/adapter" --case \
    mlp.seed.natural.shard-grad-op.k2.flat.layer.rank.s.sgd.steps40 \
    --records "$folder/unclaimed" >"$folder/out" 2>"$folder/err"
code=$?
result 'a case that is not claimed' "$([ $code = 77 ] &&
    grep -q 'cases that need shard-grad-op 1 ' "$folder/out" &&
    grep -q ': elsewhere, 0 of 0 cases judged, 1 not claimed;' "$folder/out" ||
    echo "exit $code: $(tail -n 3 "$folder/out")")"
"$cts" verify "$folder/unclaimed" --case 'mlp.*' >"$folder/out" 2>&1
result 'and its kept record says so' "$(
    grep -q 'cases that need shard-grad-op ' "$folder/out" ||
        tail -n 3 "$folder/out")"
"$cts" run --adapter x --engine ref >/dev/null 2>&1
code=$?
result 'two engines' "$([ $code = 64 ] || echo "exit $code")"

finish 1

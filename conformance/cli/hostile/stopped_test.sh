#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# stopped_test.sh - a run that does not come to its end, because a case failed
# under --fail-fast or because it was interrupted, still says what it found: a
# report that is whole, marked, and can be read.
#
# usage: stopped_test.sh FSDP-CTS
set -uo pipefail

# shellcheck source=conformance/cli/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/../checks.sh"
cd "$folder" || exit 1

# has PATTERN FILE: nothing, or what there is instead
has()
{
    grep -E -- "$1" "$2" >found || tail -n 2 "$2"
}

# ---- --fail-fast ----
# Not linear.large: under a sanitizer a process has more than is allowed there.
few=(--ranks 2 --case 'linear.small.*,linear.tiny.*')
n=$("$cts" list cases --workload linear --ranks 2 | grep -c 'linear\.[st]')

"$cts" run --engine ref "${few[@]}" --fail-fast --report all.jsonl >out 2>err
result '--fail-fast, nothing fails' "$([ $? -eq 0 ] || tail -n 1 out err)"
result 'all of it is judged' "$(has ' judged, .* 0 fail' out
    grep -h 'not run' out err)"

"$cts" run --engine ref "${few[@]}" --fail-fast --jobs 1 --report one.jsonl \
    --junit one.xml --mutant divide-twice >out 2>err
result '--fail-fast, one fails' "$([ $? -eq 1 ] || tail -n 1 out err)"
result 'it says so' "$(has '^NON-CONFORMANT \(stopped at the first failure:' out)"
failing=$("$cts" run --engine ref --dry-run --from one.jsonl \
    --failed --mutant divide-twice 2>err | wc -l)
result 'one failing case' "$([ "$failing" -eq 1 ] || echo "$failing: $(cat err)")"
left=$(sed -n 's/.* first failure: \([0-9]*\) of .*/\1/p' out)
result 'how many were not run' "$([ "${left:-0}" -gt 0 ] &&
    [ "$left" -lt "$n" ] || tail -n 1 out)"
result 'JSON Lines' "$(has '"stopped":\{"why":"stopped at the first failure","not_run":'"$left," one.jsonl)"
result 'JUnit' "$(has 'message="not run: stopped at the first failure"' one.xml)"
"$cts" report one.jsonl >again 2>err
result 'the report, read' "$([ $? -eq 1 ] || echo "not 1: $(cat err)"
    [ "$(tail -n 1 again)" = "$(grep '^NON' out)" ] || tail -n 1 again)"

"$cts" run --engine ref,impl "${few[@]}" --fail-fast --jobs 1 \
    --mutant divide-twice >out 2>err
result 'the engine behind it is not run' "$([ $? -eq 1 ] || tail -n 1 out)$(
    has 'impl was not run' err)"
for option in --record-only '--shard 1/2' '--scripts 3'; do
    # shellcheck disable=SC2086
    "$cts" run --engine ref --fail-fast $option --records r >out 2>err
    result "--fail-fast $option" "$([ $? -eq 64 ] || echo 'not 64')"
done

# ---- Interrupted ----
# until_begun: some case has ended
until_begun()
{
    for _ in $(seq 400); do
        find "$1" -name case.json 2>/dev/null | head -c 1 >found
        [ ! -s found ] || return 0
        sleep 0.05
    done
    return 1
}

# stopped SIGNAL ARGUMENTS...: a run whose first cases have ended
stopped()
{
    local signal=$1 pid
    shift
    rm -rf records part.jsonl part.xml
    "$cts" run --engine ref --ranks 3 --records records --report part.jsonl \
        --junit part.xml "$@" >out 2>err &
    pid=$!
    until_begun records || echo 'no case has ended'
    kill -s "$signal" "$pid"
    wait "$pid"
    got=$?
}

for signal in INT TERM; do
    stopped "$signal"
    result "SIG$signal" "$([ "$got" -eq 2 ] || echo "exit $got"
        has '^INCOMPLETE \(interrupted: [0-9]+ of [0-9]+ cases were not run' out
        has '^fsdp-cts: interrupted$' err)"
    result 'its JSON Lines' "$(has '"stopped":\{"why":"interrupted"' part.jsonl)"
    result 'its JUnit' "$(has 'message="not run: interrupted"' part.xml
        has '^</testsuites>' part.xml)"
    "$cts" report part.jsonl >again 2>err
    result 'its report, read' "$([ $? -eq 2 ] || echo "not 2: $(cat err)"
        has '^INCOMPLETE \(interrupted: ' again)"
done

# ---- Interrupted behind the cases ----
export TMPDIR=$PWD/tmp
mkdir tmp

# phase LINE ARGUMENTS...: interrupted when a line of stderr begins like that.
# Its words are in out and err; its exit code is in got.
phase()
{
    local line=$1 pid
    shift
    "$cts" run "$@" >out 2>err &
    pid=$!
    until grep -q "^$line" err || ! kill -0 "$pid" 2>/dev/null; do
        sleep 0.02
    done
    kill -s INT "$pid" 2>/dev/null
    wait "$pid"
    got=$?
}

# nothing_left: what there is, of folders and of processes
nothing_left()
{
    ls -A tmp
    pgrep -af -- "--records $TMPDIR" | head -n 3
    has '^fsdp-cts: interrupted$' err
}

# All has been recorded; judging takes a moment, which may be over.
for _ in 1 2 3 4 5; do
    phase 'baseline: \([0-9]*\) of \1 ' --engine ref --workload mlp --ranks 3
    [ "$got" -eq 0 ] || break
done
result 'while it judges' "$([ "$got" -eq 2 ] || echo "exit $got"
    has '^INCOMPLETE \(interrupted: 0 of [0-9]+ cases were not run' out
    nothing_left)"

# What drawn scripts have found is said, and how it is found again.
wrong=(--engine ref --mutant first-rate-for-ever)
phase 'fsdp-cts: ref: script.*fails' "${wrong[@]}" --scripts 100 --seed 1
result 'while scripts are played' "$([ "$got" -eq 1 ] || echo "exit $got"
    has '^ref: 50 scripts drawn by .* [1-9][0-9]* of them fail$' out
    nothing_left)"
phase 'fsdp-cts: making a script smaller' "${wrong[@]}" --scripts 8 --seed 1
result 'while a script is made smaller' "$([ "$got" -eq 1 ] || echo "exit $got"
    has '^ref: 8 scripts drawn by .* [1-9] of them fail$' out
    has '^# script\.[0-9]+\.' out
    nothing_left)"
again=$(sed -n 's/^  rerun  fsdp-cts run //p' out)
# shellcheck disable=SC2086
"$cts" run $again >out 2>err
result 'its rerun fails' "$([ $? -eq 1 ] || tail -n 1 out err)"
phase 'making graph' --engine ref --workload graph --seeds 3 --partial-ok \
    --mutant divide-twice
result 'while a graph is made smaller' "$([ "$got" -eq 1 ] || echo "exit $got"
    has '^The smallest case .* were run; interrupted\):$' out
    nothing_left)"
unset TMPDIR

# Of an earlier run nothing is judged. The interrupt comes when a case of the
# later run has ended: as the run begins it does not listen yet.
"$cts" run --engine ref --ranks 2 --workload linear --records records \
    --record-only >out 2>err
touch earlier
"$cts" run --engine ref --ranks 2,3 --records records --report part.jsonl \
    >out 2>err &
pid=$!
until find records -newer earlier -name case.json -not -path '*/baseline/*' \
    >found 2>/dev/null; [ -s found ]; do
    sleep 0.05
done
kill -s INT "$pid"
wait "$pid"
result 'records of an earlier run' "$([ $? -eq 2 ] || tail -n 1 out err
    judged=$(sed -n 's/^INC.*: ref, \([0-9]*\) of .*/\1/p' out)
    begun=$(find records -name case.json -not -path '*/baseline/*' | wc -l)
    [ "${judged:-0}" -le "$begun" ] || echo "$judged judged of $begun")"

finish 27

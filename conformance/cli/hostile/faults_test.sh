#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# faults_test.sh - a run in which calls of the system fail, one after the other,
# wherever they are made: by the supervisor, a worker or a rank. It ends with a
# verdict, or says in a line what failed; it blames no engine for it, calls
# nothing right that was not run, and leaves nothing.
#
# usage: faults_test.sh FSDP-CTS [INCLUDE-FOLDER [SITES [KIND ...]]]
# SITES: how many calls of each kind fail, spread over all of them (4); all: each
set -uo pipefail

# shellcheck source=conformance/cli/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/../checks.sh"
sites=${3:-4}
shift $(($# < 3 ? $# : 3))
faults=$(dirname "$cts")/../tests/faults_testing
id=mlp.seed.natural.full-shard.k2.flat.layer.rank.s.sgd.steps40
export TMPDIR=$folder/tmp
mkdir "$TMPDIR"

# The number that errno has, and what the C library says of it.
declare -A number=([ENOSPC]=28 [EROFS]=30 [EIO]=5 [EMFILE]=24 [ENOMEM]=12
    [EINTR]=4)
declare -A text=([ENOSPC]='No space left' [EROFS]='Read-only' [EIO]='put/output'
    [EMFILE]='Too many open files' [ENOMEM]='memory\|cannot allocate')

# run KIND ERROR FIRST EVERY ARGUMENT...: sets code, and calls, hit, left.
run()
{
    local kind=$1 error=$2 first=$3 every=$4
    shift 4
    rm -rf "$folder/report.jsonl" "$folder/said"
    timeout 100 "$faults" "$kind" "${number[$error]}" "$first" "$every" \
        "$cts" run --engine ref --case "$id" --partial-ok --timeout 20 \
        --report "$folder/report.jsonl" "$@" \
        9>"$folder/said" >"$folder/out" 2>"$folder/err"
    code=$?
    calls=$(sed -n 's/^calls \([0-9]*\).*/\1/p' "$folder/said")
    hit=$(sed -n 's/^calls [0-9]* //p' "$folder/said")
    left=$(sed -n 's/^left //p' "$folder/said" | tr '\n' ' ')
}

outcomes()
{
    grep -o '"outcome":"[a-z]*"' "$folder/report.jsonl" | sort | uniq -c
}

# judge ERROR: prints what is wrong with the run that was.
judge()
{
    local error=$1
    if grep -q -e 'while loading shared libraries' -e 'for initial thread' \
        -e 'ended by \(SIGKILL\|signal 11\) before its first case' \
        -e 'standard output could not be written' "$folder/err"; then
        # The loader's words, or its crash; or all has ended.
        [ "$code" -gt 1 ] || echo "exit $code"
    elif [ "$code" -eq 0 ]; then
        [ "$(outcomes)" = "$whole" ] || echo 'exit 0, but its report is not whole'
    elif [ "$code" -eq 1 ]; then
        echo "blames the engine: $(grep '^  what' "$folder/out" | head -n 1)"
    elif [ "$code" -ge 124 ]; then
        echo "exit $code"
    elif ! grep -q "${text[$error]:-.}" "$folder/err" "$folder/out"; then
        echo "exit $code, does not say what failed: $(head -n 1 "$folder/err")"
    fi
    [ -z "$left" ] || echo "processes are left: $left"
    case $hit in
        unlink* | rmdir) ;; # then it cannot be gone
        *)
            [ -z "$(ls -A "$TMPDIR")" ] || echo "left $(ls -A "$TMPDIR")"
            find "$folder/records" \( -name '*.partial' -o -name '.batch-*' \) \
                -printf 'left %P\n' 2>/dev/null
            ;;
    esac
}

# sweep KIND ERROR
sweep()
{
    local kind=$1 error=$2 step n=0 why bad='' whole_calls
    local -A codes=()
    run "$kind" "$error" 0 0 --records "$folder/records"
    whole_calls=$calls
    step=1
    [ "$sites" = all ] || step=$((whole_calls / sites + 1))
    # The first call that takes memory is the loader's, who dies of it.
    for ((i = 1 + (RANDOM % step); i <= whole_calls; i += step)); do
        [ "$kind" = memory ] && [ "$i" = 1 ] && continue
        # With records kept, and with a folder of the run's own.
        if ((n % 2)); then
            run "$kind" "$error" "$i" 0
        else
            run "$kind" "$error" "$i" 0 --records "$folder/records"
        fi
        n=$((n + 1))
        codes[$code]=$((${codes[$code]:-0} + 1))
        why=$(judge "$error" | tr '\n' ';')
        if [ -n "$why" ]; then
            bad=yes
            result "$kind $error, call $i ($hit)" "$why"
        fi
        rm -rf "$TMPDIR" "$folder/records"
        mkdir "$TMPDIR"
    done
    for i in "${!codes[@]}"; do
        printf '     %s %s: exit %s: %s of %s\n' "$kind" "$error" "$i" \
            "${codes[$i]}" "$n"
    done
    [ -n "$bad" ] || result "$kind $error: $n calls of $whole_calls" ''
}

run writes ENOSPC 0 0
[ "$code" -ne 77 ] || skip "$(cat "$folder/err")"
result 'without a fault it passes' "$([ "$code" = 0 ] || echo "exit $code")"
whole=$(outcomes)
# ends WHAT CODE TEXT: the run that was ended so, and said so.
ends()
{
    result "$1" "$([ "$code" = "$2" ] && grep -q "$3" "$folder/out" "$folder/err" ||
        echo "exit $code: $(head -n 1 "$folder/err")")"
}

# plain ARGUMENT...: without faults.
plain()
{
    "$cts" run --engine ref --case "$id" --partial-ok --timeout 20 \
        --report "$folder/report.jsonl" "$@" >"$folder/out" 2>"$folder/err"
    code=$?
}

RANDOM=${SEED:-$$}
for what in "${@:-writes:ENOSPC writes:EROFS descriptors:EMFILE memory:ENOMEM}"; do
    for pair in $what; do
        sweep "${pair%:*}" "${pair#*:}"
    done
done

# Every other call that waits is interrupted, and every third.
for every in 2 3; do
    run slow EINTR 2 "$every"
    result "of $calls calls that wait each ${every}th is interrupted" \
        "$([ "$code" = 0 ] && [ "$(outcomes)" = "$whole" ] || echo "exit $code")"
done

# Limits that a shell sets, from where a run begins to where it passes.
for limit in 'n 8' 'n 10' 'n 12' 'n 16' 'd 4000' 'd 8000' 'd 32000' 'v 60000' 'v 120000' 'v 200000' 'f 1' 'f 32'; do
    (
        # shellcheck disable=SC2086  # a letter and a number
        ulimit -S${limit% *} ${limit#* }
        plain --records "$folder/limited"
        exit "$code"
    )
    code=$?
    if [ "$code" = 0 ]; then
        why=$([ "$(outcomes)" = "$whole" ] || echo 'its report is not whole')
    else
        why=$([ "$code" -gt 1 ] && [ -s "$folder/err" ] ||
            echo "exit $code: $(head -n 1 "$folder/err")")
    fi
    result "ulimit -$limit: exit $code, $(tail -n 1 "$folder/err")" "$why"
    rm -rf "$folder/limited"
done

# Two records that are larger than a file may be, and one that is not: those
# have no verdict and nothing is left of them, and the run goes on.
(
    ulimit -S -f 80
    exec "$cts" run --engine ref --jobs 1 --partial-ok \
        --case gpt.odd.natural.full-shard.k2.flat.block.rank.s.sgd.keep-root \
        --case gpt.odd.natural.no-shard.k4.per-parameter.block.rank.s.sgd \
        --case mlp.odd.natural.full-shard.k4.flat.layer.rank.s.sgd.eval \
        --records "$folder/limited" >"$folder/out" 2>"$folder/err"
)
code=$?
ends 'two of three records cannot be written' 2 '1 of 3 cases have a record'
result 'and for both it says why' "$(
    n=$(grep -c '^\[gpt.*no record: .*File too large' "$folder/err")
    [ "$n" = 4 ] || echo "$n lines"
    find "$folder/limited" \( -name '.*-*' -o -name 'gpt*' \) -printf 'left %P\n'
)"

# Two runs in one folder: the second one is told, and the first one goes on.
"$cts" run --engine ref --workload mlp --ranks 2 --partial-ok --quiet \
    --records "$folder/two" >"$folder/first" 2>&1 &
pid=$!
while [ -z "$(ls -A "$folder/two" 2>/dev/null)" ]; do
    kill -0 "$pid" 2>/dev/null || break
done
plain --records "$folder/two"
ends 'a second run in one folder' 64 'another run writes to it'
wait "$pid" || echo "exit $?" >>"$folder/failed"
result 'and the first one' "$(cat "$folder/failed" 2>/dev/null)"

# A folder that is only to be read.
mkdir "$folder/readonly"
if mount -t tmpfs -o ro none "$folder/readonly" 2>/dev/null; then
    plain --records "$folder/readonly/records"
    ends 'a folder that is only to be read' 74 'Read-only'
    umount "$folder/readonly"
fi
finish 11

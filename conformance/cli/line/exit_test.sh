#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# exit_test.sh - the exit codes of all commands, each as the one table says that
# `fsdp-cts --help` prints: a selection that passes, one that is blocked, wrong
# usage, bad data, and what cannot be written.
#
# usage: exit_test.sh FSDP-CTS INCLUDE-FOLDER
set -uo pipefail

# shellcheck source=conformance/cli/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/../checks.sh"
cd "$folder" || exit 1
"$cts" list cases --ranks 2 --workload mlp >all
case=$(awk 'NR == 1 { print $1 }' all)
exact=(--engine ref --case "$case")

"$cts" --help >out
sed -n '/^exit codes:/,$s/^ *\([0-9][0-9]*\)  .*/\1/p' out >codes
result 'the table' "$([ "$(tr '\n' ' ' <codes)" = '0 1 2 64 65 74 77 ' ] ||
    tr '\n' ' ' <codes)"
for command in run verify report; do
    "$cts" "$command" --help >help
    result "$command --help has it" "$(
        diff <(sed -n '/^exit codes:/,$p' out) <(sed -n '/^exit codes:/,$p' help)
    )"
done

# ends WHAT CODE ARGUMENTS...
ends()
{
    local what=$1 code=$2 got
    shift 2
    "$cts" "$@" >out 2>err
    got=$?
    result "$code: $what" "$(
        [ "$got" -eq "$code" ] || echo "exit $got: $(tail -n 1 out err)"
        grep -x "$code" codes >found || echo 'it is not in the table'
    )"
}

"$cts" run "${exact[@]}" --records good --record-only >out 2>err
"$cts" verify good --case "$case" --report good.jsonl >out 2>err
"$cts" run "${exact[@]}" --mutant divide-twice --report bad.jsonl >out 2>err

# ---- A selection ----
ends 'a selection that passes' 0 run "${exact[@]}"
result 'it has no verdict' "$(sed -n '/^CONFORMANT/p' out
    grep '^INCOMPLETE (a selection' out >found || tail -n 1 out)"
ends 'one that passes, --strict' 2 run "${exact[@]}" --strict
ends 'its records' 0 verify good --case "$case"
ends 'its records, --strict' 2 verify good --case "$case" --strict
ends 'its report' 0 report good.jsonl
ends 'its report, --strict' 2 report good.jsonl --strict
ends 'one that fails' 1 run "${exact[@]}" --mutant divide-twice
ends 'a report of what fails' 1 report bad.jsonl
ends 'records of half of it' 2 verify good --ranks 2 --workload mlp

# ---- One fault, one red ----
# Each requirement alone, as ctest asks for it.
"$cts" list requirements >all
red=
skipped=0
while read -r id _; do
    "$cts" report bad.jsonl --requirement "$id" --quiet >out 2>err
    case $? in
    0) ;;
    77) skipped=$((skipped + 1)) ;;
    *) red="$red $id" ;;
    esac
done < <(sed -n 's/^\([a-z0-9-]*\.[a-z.-]*\) .*/\1/p' all)
result 'one fault is one red' "$([ "$red" = ' reduce.scale' ] || echo "$red"
    [ "$skipped" -gt 5 ] || echo "$skipped skipped")"
ends 'what is blocked' 77 report bad.jsonl --requirement step.sgd
result 'it says by what' "$(
    grep -x 'step.sgd: blocked by reduce.scale in 1 case' out >found || cat out)"
result 'and has no table of cases' "$(grep '^model ' out
    [ "$(wc -l <out)" -lt 12 ] || echo "$(wc -l <out) lines")"
ends 'what is blocked, --strict' 2 report bad.jsonl --requirement step.sgd \
    --strict
ends 'what fails' 1 report bad.jsonl --requirement reduce.scale
result 'is its finding alone' "$(grep '^model ' out
    [ "$(grep -c '^fail ' out)" = 1 ] || grep '^fail ' out)"

# ---- Usage, data ----
ends 'an unknown option' 64 run --nope
ends 'an engine that is not there' 64 run --engine ./nope.so
ends 'an engine that is not there, of bench' 64 bench steps --engine nope
ends 'a list that is none' 64 list nope
mkdir empty
ends 'no records' 65 verify empty
echo '{' >broken.jsonl
ends 'no report' 65 report broken.jsonl

# ---- What cannot be written ----
for option in report junit; do
    ends "--$option in no folder" 74 run "${exact[@]}" "--$option" ./no/such
    ends "--$option, verify" 74 verify good --case "$case" "--$option" ./no/such
done
ends '--report on a full disk' 74 run "${exact[@]}" --report /dev/full
ends '--records in no folder' 74 run "${exact[@]}" --records ./no/such
ends '--trace in no folder' 74 run "${exact[@]}" --trace ./no/such
ends '--pictures in no folder' 74 run "${exact[@]}" --pictures ./no/such
ends 'report --html on a full disk' 74 report good.jsonl --html /dev/full
ends 'report --pictures in no folder' 74 report good.jsonl --pictures ./no/such
ends 'of a report that fails' 1 report bad.jsonl --pictures ./no/such
TMPDIR=./no/such ends 'TMPDIR is not there' 74 run "${exact[@]}"
"$cts" list cases >/dev/full 2>err
result '74: standard output' "$([ $? -eq 74 ] || cat err)"

finish 39

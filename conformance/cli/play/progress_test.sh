#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# progress_test.sh - long work says how far it is: on a terminal a line that
# rewrites itself, in colour unless NO_COLOR is set; in a pipe whole lines
# without any escape; with --quiet nothing.
#
# usage: progress_test.sh FSDP-CTS
set -uo pipefail

# shellcheck source=conformance/cli/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/../checks.sh"
watch=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../../../ci/watch")
cd "$folder" || exit 1
esc=$'\e'

needs script

# on_terminal COMMAND...: what it writes to a terminal, into `seen`
on_terminal()
{
    printf '%q ' "$@" >line
    TERM=xterm script -qec "$(cat line)" /dev/null </dev/null >seen 2>&1
}

has()
{
    grep -qE -- "$1" seen || tail -c 300 seen
}

# Not linear.large: under a sanitizer a process has more than is allowed there.
few=(run --engine ref --ranks 2 --case 'linear.small.*,linear.tiny.*')
n=$("$cts" list cases --workload linear --ranks 2 | grep -c 'linear\.[st]')

on_terminal "$cts" "${few[@]}"
result 'a bar, counts, time' "$(has "ref: \[.*#.*\] [0-9]+ of $n cases, [0-9]+ s")"
result 'the judge has one' "$(has "judge: \[.*\] $n of $n cases")"
result 'in colour' "$(grep -qF "$esc[32m" seen || echo 'no colour')"
result 'the verdict, too' "$(grep -qF "$esc[1;33mINCOMPLETE$esc[0m" seen ||
    grep INCOMPLETE seen)"
NO_COLOR=1 on_terminal "$cts" "${few[@]}"
result 'NO_COLOR' "$(grep -E "$esc\[[0-9;]+m" seen | head -c 200)"
result 'still a line that rewrites itself' "$(grep -qF "$esc[K" seen || echo no)"
on_terminal "$cts" "${few[@]}" --mutant divide-twice --fail-fast
result 'failures are counted' "$(has 'judge: .*[0-9]+ failed')"
on_terminal "$cts" "${few[@]}" --quiet
result '--quiet' "$(grep -F "$esc" seen; has '^PASSED')"
# The few are over before the line is written again.
on_terminal "$cts" run --engine ref --ranks 2 --workload mlp --record-only
result 'what is left' "$(has 'about [0-9]+ s left')"

"$cts" "${few[@]}" >out 2>err
result 'a pipe: no escapes' "$(cat out err | grep -F "$esc")"
cp err seen
result 'a pipe: the end of each phase' "$(has "^ref: $n of $n cases$"
    has "^judge: $n of $n cases$")"

# Ranks that die are counted while cases run, and it is said what is quicker.
dead='first [0-9]+ cases; --fail-fast stops'
result 'nobody dies' "$(grep -E "died in each|failed" seen)"
"$cts" run --engine ref --mutant hostile-crash --record-only --ranks 2 \
    --case 'mlp.odd.*' >out 2>err
cp err seen
result 'ranks die: counts' "$(has '^ref: ([0-9]+) of \1 cases, [1-9][0-9]* failed$')"
result 'ranks die: said once' "$(has "^fsdp-cts: a rank has died.*$dead"
    [ "$(grep -cE "$dead" seen)" -eq 1 ] || echo twice)"

# Every ten seconds: a command that takes longer.
"$cts" mutants divide-twice >out 2>err
cp err seen
result 'mutants' "$(has '^mutants: 1 of 1 mutants$')"
"$watch" sleeping log sh -c 'echo "[3/7] x"; sleep 10.5' 2>err
result 'ci/watch: its exit code' "$([ $? -eq 0 ] || echo 'not 0')"
cp err seen
result 'ci/watch: a line' "$(has '^sleeping: 3 of 7, 10 s$')"
"$watch" failing log false 2>err
result 'ci/watch: of what fails' "$([ $? -eq 1 ] || echo 'not 1')"

finish 18

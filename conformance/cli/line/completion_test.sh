#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# completion_test.sh - completions and the manual page know each command, and
# each option that its --help has; bash completes by them.
#
# usage: completion_test.sh FSDP-CTS INCLUDE-FOLDER
set -uo pipefail

# shellcheck source=conformance/cli/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/../checks.sh"
cd "$folder" || exit 1

# shellcheck disable=SC2094  # the command reads no file
for form in bash zsh fish man; do
    "$cts" completion "$form" >"$form" 2>err || cat err
done
"$cts" --help >help
sed -n 's/^  \([a-z]*\)  *[a-z].*/\1/p' help >commands
result 'there are commands' "$([ "$(wc -l <commands)" -gt 12 ] ||
    cat commands)"

while read -r command; do
    "$cts" "$command" --help >help
    sed -n 's/^  --\([a-z0-9-]*\).*/\1/p' help >options
    sed -n "/^        $command) /{s/.*='//;s/' ;;\$//;p;}" bash |
        tr ' ' '\n' | sed -n 's/^--//p' >in_bash
    awk -v begin="        $command) " 'index($0, begin) == 1 { n = 1 }
        n { print } n && /;;/ { exit }' zsh |
        sed -n "s/^ *'--\\([a-z0-9-]*\\):.*/\\1/p" >in_zsh
    sed -n "s/.*_from $command' -l \\([a-z0-9-]*\\) .*/\\1/p" fish >in_fish
    result "$command" "$(
        for shell in bash zsh fish; do
            diff options "in_$shell"
        done
        grep -x ".SS $command" man >found || echo 'it is not in the manual'
        [ -s options ] || [ "$command" != run ] || echo 'no options'
    )"
done <commands

# completes WORD... WANTED: the last word before it is to be completed.
# shellcheck disable=SC1091  # written above
. ./bash
completes()
{
    local wanted=${*: -1}

    COMP_WORDS=(fsdp-cts "${@:1:$#-1}")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _fsdp_cts
    result "bash: $* " "$([ "${COMPREPLY[*]}" = "$wanted" ] ||
        echo "${COMPREPLY[*]}")"
}
completes ru run
completes run --eng --engine
completes verify kept --juni --junit
completes list --engi ''
result 'all words of a long line' "$(
    grep "l partial-ok -d 'exit 0 also .* claim of the core, .* passes'" fish \
        >found || grep 'l partial-ok' fish)"

if command -v groff >found; then
    groff -man -Tascii -ww man >page 2>err
    result 'the manual is well formed' "$(cat err
        grep -- '--engine NAME|PATH.so' page >found || echo 'no --engine'
        grep 'EXIT STATUS\|E.EX.XI.I' page >found || echo 'no exit status')"
fi
"$cts" completion ksh >out 2>err
code=$?
result 'another shell' "$([ $code -eq 64 ] || echo "exit $code"
    [ ! -s out ] || cat out)"

finish 20

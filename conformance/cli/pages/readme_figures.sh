#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# readme_figures.sh - the verdicts that README.md shows are those of the whole
# run that the tests have just judged.
#
# usage: readme_figures.sh FSDP-CTS README REPORT.jsonl...
set -euo pipefail

command=$1
readme=$2
shift 2

# One blank between the words of a row, and no pipe: a grep that ends at the
# first match ends what writes to it with SIGPIPE, and the check with it.
rows=$(tr -s ' ' <"$readme")

failed=0
for report in "$@"; do
    # CONFORMANT: ref, 487 of 487 cases judged, 58 not claimed; 25906 pass, 0
    # fail, 0 blocked -> a row of README's table, blanks apart
    row=$("$command" report "$report" | sed -nE \
        's/^([A-Z-]+): ([a-z]+), ([0-9]+) of ([0-9]+) cases judged, ([0-9]+) not claimed; ([0-9]+) pass, ([0-9]+) fail, ([0-9]+) blocked$/\2 \3\/\4 \5 \6 \7 \8 errors \1/p')
    if [ -z "$row" ]; then
        echo "FAIL $report: no verdict is printed of it"
        failed=1
    elif grep -qxF "$row" <<<"$rows"; then
        echo "ok   $row"
    else
        echo "FAIL README has no such row: $row"
        failed=1
    fi
done
exit "$failed"

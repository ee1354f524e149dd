#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# table_test.sh - the table of cases: with --verbose each row has its case's id,
# so that no two are the same and any can be run again; what the record of an
# adapter does not measure is no number in it.
#
# usage: table_test.sh FSDP-CTS INCLUDE-FOLDER
set -uo pipefail

# shellcheck source=conformance/cli/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"
kept=$(realpath "$2/../../fixtures/records/pytorch-fsdp2")
cd "$folder" || exit 1

"$cts" run --engine ref --workload mlp --ranks 3 --verbose >out 2>err
grep '^mlp\.' out >rows
result 'no two rows are the same' "$(
    sort rows | uniq -d
    [ "$(wc -l <rows)" -gt 20 ] || echo "$(wc -l <rows) rows"
)"
"$cts" list cases --workload mlp --ranks 3 | awk '{ print $1 }' | sort >wanted
result 'each has its id' "$(awk '{ print $NF }' rows | sort | diff wanted -)"
result 'what was measured is a number' "$(grep 'n/a' rows)"

case=$(cd "$kept" && printf '%s\n' mlp.odd.*/case.json | sed '1s|/.*||;q')
mkdir records
cp -r "$kept/$case" records
"$cts" run --engine ref --case "$case" --record-only --quiet --records own
cp -r own/baseline records
"$cts" verify records --case "$case" >out 2>err
result 'what an adapter does not measure is none' "$(
    grep '^mlp\.' out >rows
    [ "$(wc -l <rows)" = 1 ] || cat out err
    [ "$(awk '{ print $(NF - 3), $(NF - 2) }' rows)" = 'n/a n/a' ] || cat rows
)"

finish 4

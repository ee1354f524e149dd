#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# table_test.sh - the table of cases: each row has its case's id, so that no two
# are the same and any can be run again; of many cases it has those that deviate,
# and all with --verbose; what the record of an adapter does not measure is no
# number in it.
#
# usage: table_test.sh FSDP-CTS INCLUDE-FOLDER
set -uo pipefail

# shellcheck source=conformance/cli/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/../checks.sh"
kept=$(realpath "$2/../../fixtures/records/pytorch-ddp")
cd "$folder" || exit 1

"$cts" run --engine ref --workload linear --ranks 3 --verbose >out 2>err
grep ' linear\.[^ ]*$' out >rows
result 'no two rows are the same' "$(
    sort rows | uniq -d
    [ "$(wc -l <rows)" -gt 20 ] || echo "$(wc -l <rows) rows"
)"
"$cts" list cases --workload linear --ranks 3 | awk '{ print $1 }' | sort >wanted
result 'each has its id' "$(awk '{ print $NF }' rows | sort | diff wanted -)"
result 'what was measured is a number' "$(grep 'n/a' rows)"

"$cts" run --engine ref --workload linear --ranks 3 >out 2>err
result 'of many that are right none is listed' "$(
    grep ' linear\.[^ ]*$' out
    grep -q '^and [0-9]* cases without a deviation' out || head -n 3 out)"
"$cts" run --engine ref --workload linear --ranks 3 --mutant divide-twice \
    >out 2>err
result 'of many that deviate twenty are' "$(
    n=$(grep -c ' judged  *linear\.[^ ]*$' out)
    [ "$n" = 20 ] || echo "$n"
    grep -q '^and [0-9]* cases more that deviate' out || echo 'not counted')"

case=$(cd "$kept" && printf '%s\n' mlp.odd.*/case.json | sed '1s|/.*||;q')
mkdir records
cp -r "$kept/$case" records
"$cts" run --engine ref --case "$case" --record-only --quiet --records own
cp -r own/baseline records
"$cts" verify records --case "$case" >out 2>err
result 'what an adapter does not measure is none' "$(
    grep ' judged  *mlp\.[^ ]*$' out >rows
    [ "$(wc -l <rows)" = 1 ] || cat out err
    [ "$(awk '{ print $(NF - 4), $(NF - 3) }' rows)" = 'n/a n/a' ] || cat rows
)"

finish 6

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# trace_test.sh - run --trace: one file for one case, whole or not there.
#
# usage: trace_test.sh FSDP-CTS [INCLUDE-FOLDER]
set -uo pipefail

# shellcheck source=conformance/cli/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"
cd "$folder" || exit 1
case=gpt.tiny.natural.hybrid-shard.k4r2.flat.layer.rank.ss.sgd.pf1.pb1.rif1

timeout 120 "$cts" run --engine impl --case "$case" --records kept \
    --trace trace.json --quiet --partial-ok >out 2>err
got=$?
result 'run --trace' "$([ "$got" -eq 0 ] || cat out err)"
result 'the last line' "$([ "$(tail -n 1 trace.json)" = ']}' ] || echo missing)"
# 4 ranks, 4 steps, 2 microbatches, 11 units: 2 windows, 1 reduction each.
for expected in all-gather:704 reduce-scatter:352 all-reduce:352; do
    name=${expected%:*}
    got=$(grep -c "\"ph\":\"X\",\"name\":\"$name\",\"cat\":\"coll" trace.json)
    result "events of $name" "$([ "$got" -eq "${expected#*:}" ] || echo "$got")"
done
got=$(grep -c '"name":"process_name"' trace.json)
result 'ranks' "$([ "$got" -eq 4 ] || echo "$got")"
left=$(find . -name '*.partial')
result 'nothing is left behind' "$left"

timeout 60 "$cts" run --engine ref --ranks 3 --trace two.json >out 2>err
got=$?
result 'several cases' "$([ "$got" -eq 64 ] || echo "exit $got")"
result 'says why' "$(grep -q -- '--trace is about one case' err || cat err)"
timeout 60 "$cts" run --engine ref,impl --case "$case" --trace two.json \
    >out 2>err
got=$?
result 'several engines' "$([ "$got" -eq 64 ] || echo "exit $got")"
timeout 60 "$cts" run --case "$case" --trace no/such/folder.json >out 2>err
got=$?
result 'no such folder' "$([ "$got" -eq 74 ] || echo "exit $got")"
result 'no trace of those' "$(ls two.json 2>/dev/null)"
finish 1

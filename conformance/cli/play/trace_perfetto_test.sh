#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# trace_perfetto_test.sh - a trace in Perfetto's own trace processor: nothing of
# it is refused, all arrows join two events, counters come to the record's
# peaks. That the file says so is trace_test's.
#
# usage: trace_perfetto_test.sh FSDP-CTS [INCLUDE-FOLDER]
#
# TRACE_PROCESSOR names the program, trace_processor_shell, which the package
# `perfetto` of PyPI fetches from Google when it is first used.
set -uo pipefail

# shellcheck source=conformance/cli/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/../checks.sh"
cd "$folder" || exit 1

processor=${TRACE_PROCESSOR:-}
for name in trace_processor_shell trace_processor; do
    processor=${processor:-$(command -v "$name")}
done
for kept in "${XDG_DATA_HOME:-$HOME/.local/share}"/perfetto/prebuilts/trace_processor_shell*; do
    [ ! -x "$kept" ] || processor=${processor:-$kept}
done
[ -n "$processor" ] || skip 'there is no trace_processor_shell'

case=mlp.seed.natural.full-shard.k2.flat.layer.rank.s.sgd.steps40
timeout 120 "$cts" run --engine impl --case "$case" --records kept \
    --trace trace.json --quiet --partial-ok >out 2>&1
result 'run --trace' "$([ -s trace.json ] || cat out)"

ask() # QUERY: the number that it comes to
{
    echo "$1" >query.sql
    timeout 60 "$processor" -q query.sql trace.json 2>err | tail -n 1 |
        sed 's/"//g; s/\.0*$//'
}
peak() # FIELD of rank 0
{
    sed -E "s/.*\"$1\":\[?([0-9]+).*/\1/" kept/"$case"/rank-0.json
}
got=$(ask "select count(*) from stats where name like 'json_%' and value > 0 and severity = 'error';")
result 'nothing is refused' "$([ "$got" = 0 ] || echo "$got: $(cat err)")"
got=$(ask 'select count(*) from flow;')
want=$(grep -c '"ph":"s"' trace.json)
result 'all arrows join' "$([ "$got" = "$want" ] || echo "$got of $want")"
got=$(ask "select cast(max(c.value) as int) from counter c join process_counter_track t on c.track_id = t.id join process p using (upid) where p.pid = 0 and t.name like 'memory engine%';")
want=$(peak peak_engine)
result 'the peak' "$([ "$got" = "$want" ] || echo "$got, not $want")"
finish 4

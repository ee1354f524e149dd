#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# trace_test.sh - run --trace: one file for one case, whole or not there.
#
# usage: trace_test.sh FSDP-CTS [INCLUDE-FOLDER]
set -uo pipefail

# shellcheck source=conformance/cli/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/../checks.sh"
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
# Read again by other means than those that wrote it, as a program that draws it
# would: an event a line, times as whole nanoseconds.
cat >read.awk <<'END'
function value(key,    at, rest) {
    at = index($0, "\"" key "\":")
    rest = substr($0, at + length(key) + 3)
    sub(/[,}].*/, "", rest)
    gsub(/"/, "", rest)
    return at ? rest : ""
}
function ns(text) { sub(/\./, "", text); return text + 0 }
/"ph":"X"/ {
    t = value("pid") "/" value("tid")
    i = ++n[t]
    from[t, i] = ns(value("ts"))
    till[t, i] = from[t, i] + ns(value("dur"))
}
/"ph":"[sf]"/ {
    k = value("id")
    if (index($0, "\"ph\":\"s\"")) { begins[k]++; begun[k] = ns(value("ts")) }
    else { ends[k]++; ended[k] = ns(value("ts")) }
    on[++arrows] = value("pid") "/" value("tid")
    when[arrows] = ns(value("ts"))
}
/"ph":"C"/ {
    k = value("pid") " " value("name")
    if (!(k in most) || value("bytes") + 0 > most[k]) most[k] = value("bytes") + 0
}
END {
    for (k in begins) joined += begins[k] == 1 && ends[k] == 1 && ended[k] >= begun[k]
    for (i = 1; i <= arrows; i++) {
        found = 0
        for (k = 1; k <= n[on[i]] && !found; k++)
            found = from[on[i], k] <= when[i] && when[i] <= till[on[i], k]
        outside += !found
    }
    for (t in n)
        for (i = 1; i < n[t]; i++) {
            k = i + 1
            crossed += from[t, i] < from[t, k] && from[t, k] < till[t, i] && till[t, i] < till[t, k]
        }
    print "arrows", arrows, "joined", 2 * joined, "outside", outside + 0, "crossed", crossed + 0
    for (k in most) print k, most[k]
}
END
awk -f read.awk trace.json >read
result 'all arrows join two events' "$(awk '/^arrows/ && ($2 < 1000 ||
    $2 != $4 || $6 + $8 > 0)' read)"
for rank in 0 3; do
    record=kept/$case/rank-$rank.json
    want=$(grep -o '"peak": *\[[^]]*' "$record" | tr -dc '0-9,\n' | tr , ' ')
    got=$(for kind in param-shard param-full grad-shard grad-full optim staging \
        activation; do
        sed -n "s/^$rank memory $kind //p" read
    done | xargs)
    result "rank $rank: counters come to the peaks" \
        "$([ -n "$want" ] && [ "$got" = "$want" ] || echo "$got, not $want")"
    want=$(grep -o '"peak_engine": *[0-9]*' "$record" | tr -dc '0-9\n')
    got=$(sed -n "s/^$rank memory engine //p" read)
    result "rank $rank: so does the engine's" \
        "$([ "$got" = "$want" ] || echo "$got, not $want")"
done
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
finish 17

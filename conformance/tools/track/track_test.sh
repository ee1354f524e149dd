#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# track_test.sh - histories through the commands: regressions that were made by
# hand are named, and nothing is lost or half-written when an addition is
# killed, meets another one, or finds the disk full.
#
# usage: track_test.sh FSDP-CTS [INCLUDE-FOLDER]
set -uo pipefail

# shellcheck source=conformance/cli/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../cli/checks.sh"
cd "$folder" || exit 1
case=mlp.seed.natural.full-shard.k4.flat.layer.rank.s.sgd.steps40

# expect WHAT CODE TEXT ARGUMENT...: track answers so, with TEXT somewhere. A
# refusal is one line on stderr.
expect()
{
    local what=$1 code=$2 text=$3 why='' got
    shift 3
    timeout 120 "$cts" track "$@" >out 2>err
    got=$?
    if [ "$got" -ne "$code" ]; then
        why="exit code $got, not $code: $(head -c 300 out err)"
    elif ! grep -qF -- "$text" out err; then
        why="'$text' is not in: $(head -c 400 out err)"
    elif [ "$code" -ge 64 ] && [ "$(wc -l <err)" -ne 1 ]; then
        why="$(wc -l <err) lines on stderr: $(head -c 300 err)"
    fi
    result "$what" "$why"
}

# bench FILE COMMIT VALUE [CPU]: one timed result, as `fsdp-cts bench` has it.
bench()
{
    cat >"$1" <<END
{"format": "fsdp-bench", "version": 1, "commit": "$2",
 "date": "2026-11-21T10:00:00Z", "hardware": {"cpu": "${4:-X}", "cores": 2,
 "memory_bytes": 17179869184, "gpu": null}, "results": [
 {"name": "step.gpt.k2.impl", "unit": "tokens/s", "better": "higher",
  "median": $3, "p10": $3, "p90": $3, "samples": [$3]}]}
END
}

runs() # of the history $1
{
    "$cts" track runs --history "$1" | wc -l
}

# ---- Usage ----
expect 'no action' 64 'which action'
expect 'no such action' 64 'unknown action frobnicate' frobnicate
expect 'no history' 64 '--history' check
expect 'no such option' 64 '--frobnicate' check --frobnicate
expect 'no results' 64 'needs files of results' add --history h.db
expect 'a run that is no number' 64 '--run' check --history h.db --run x
expect 'a history that is missing' 74 'No such file' check --history h.db
expect 'results that are missing' 74 'No such file' add --history h.db no.json
expect 'no such format' 64 'gab-smaller' \
    export --history h.db --format xml out.xml
result 'nothing was made' "$([ ! -e h.db ] || echo h.db)"

# ---- A regression in a copy of the engine: one more all-gather a step, a
# ---- reduce-scatter's input held to the end of the pass ----
for mutant in '' gather-twice reduce-input-held; do
    "$cts" run --engine ref --quiet --case "$case" --partial-ok \
        ${mutant:+--mutant "$mutant"} --report "report$mutant.jsonl" \
        >/dev/null 2>&1
done
git -c init.defaultBranch=main init -q repository
commit()
{
    git -C repository -c user.name=a -c user.email=a@example.org commit -q \
        --allow-empty -m "$1" && git -C repository rev-parse HEAD
}
first=$(commit 'the first')
commit 'an innocent one' >/dev/null
third=$(commit 'the culprit')

expect 'the first run' 0 "run 1 of $first: 1 cases with exact figures" \
    add --history h.db --commit "$first" report.jsonl
expect 'the same once more' 0 'was there already' \
    add --history h.db --commit "$first" report.jsonl
expect 'nothing to compare with' 0 '0 series compared, 1 new' \
    check --history h.db
expect 'without a commit' 64 '--commit' add --history h.db report.jsonl
expect 'no commit' 65 '0-9a-f' add --history h.db --commit main report.jsonl

cp h.db gathers.db
expect 'add gather-twice' 0 'run 2' \
    add --history gathers.db --commit "$third" reportgather-twice.jsonl
expect 'one more all-gather a step is named' 1 \
    "REGRESSION $case ref collectives.all-gather: 320 -> 640 (+320: 8 in each of 40 steps, +100.00 %)" \
    check --history gathers.db
expect 'and the bytes on the wire' 1 "$case ref wire-bytes" \
    check --history gathers.db
expect 'nothing else' 1 '2 regressions, 0 improvements' \
    check --quiet --history gathers.db
expect 'where it came from' 0 "${first:0:12} (run 1" \
    bisect-hint --history gathers.db --repository repository
result 'the commits between' \
    "$(awk '/the culprit|an innocent one/ { n++ } /the first/ { n += 9 }
        END { if (n != 2) print n + 0, "lines" }' out)"
expect 'where git knows nothing' 0 "git log $first..$third" \
    bisect-hint --history gathers.db --repository "$folder"

cp h.db held.db
expect 'add reduce-input-held' 0 'run 2' \
    add --history held.db --commit "$third" reportreduce-input-held.jsonl
expect 'a reduce input that is held is named' 1 \
    "REGRESSION $case ref peak.grad-full: 4096 -> 8704 bytes" \
    check --history held.db
expect 'accept needs a reason' 64 '--reason' accept --history held.db
expect 'accept nothing' 64 'no change of that' \
    accept --history held.db --figure 'launches' --reason x
expect 'accept one figure' 0 '1 changes of run 2 are accepted: on purpose' \
    accept --history held.db --figure peak.grad-full --reason 'on purpose'
expect 'the others stay' 1 '2 regressions' check --history held.db
expect 'accept the others' 0 '2 changes' \
    accept --history held.db --case 'mlp.*' --reason 'on purpose'
expect 'a new level' 0 '0 regressions' check --history held.db
expect 'less than the level' 0 'run 3' add --history held.db \
    --date 2026-11-22T00:00:00Z --commit "$third" report.jsonl
expect 'is an improvement' 0 '0 regressions, 3 improvements' \
    check --history held.db
expect 'an older run is judged again' 0 '0 regressions, 0 improvements' \
    check --history held.db --run 2

# ---- What was timed ----
for i in $(seq 30); do
    bench bench.json "$(printf 'c%07d' "$i")" "$((1000 + i * 7 % 5))"
    "$cts" track add --quiet --history t.db bench.json
done
bench bench.json c0000031 850
expect 'a slow run' 0 'run 31' add --history t.db bench.json
expect 'is no regression by itself' 0 '0 regressions' check --history t.db
for i in 32 33 34; do
    bench bench.json "$(printf 'c%07d' "$i")" "$((905 + i * 7 % 5))"
    "$cts" track add --quiet --history t.db bench.json
done
expect 'several are' 1 'REGRESSION step.gpt.k2.impl impl tokens/s: 1002 -> ' \
    check --history t.db
expect 'since which run' 1 'last good c0000030 (run 30' check --history t.db
bench bench.json c0000035 400 'Another machine'
expect 'another machine' 0 'run 35' add --history t.db bench.json
expect 'begins a series' 0 '0 series compared, 1 new' check --history t.db

for i in $(seq 8); do
    bench "a$i.json" aaaa0001 "$((1000 + i * 13 % 7))"
    bench "b$i.json" bbbb0001 "$((900 + i * 11 % 7))"
    bench "c$i.json" cccc0001 "$((1000 + i * 11 % 7))"
done
pairs() { for i in $(seq "$2"); do echo "a$i.json $1$i.json"; done; }
# shellcheck disable=SC2046  # names of files, one a word
expect 'pairs: slower' 1 'REGRESSION step.gpt.k2.impl tokens/s: -10' \
    compare $(pairs b 8)
# shellcheck disable=SC2046
expect 'pairs: the same' 0 'same       step.gpt.k2.impl' compare $(pairs c 8)
# shellcheck disable=SC2046
expect 'pairs: too few' 64 '7 pairs are needed' compare $(pairs b 6)
expect 'pairs: an odd number' 64 'an even number' compare a1.json
expect 'pairs: not in turns' 65 'A B A B' \
    compare a1.json b1.json b2.json a2.json

# ---- Formats of others, and back ----
for format in gab-smaller gab-bigger bmf csv; do
    "$cts" track export --history t.db --run 30 --format "$format" "$format" \
        2>err
done
result 'no file of nothing' "$([ ! -e gab-smaller ] || echo 'gab-smaller')"
expect 'an export comes back' 0 '1 timed results' \
    add --history u.db --commit c0000030 gab-bigger
echo '[{"name": "n", "unit": "s", "value": 2.5}]' >custom.json
expect 'a custom benchmark' 65 '--better' \
    add --history u.db --commit c0000031 custom.json
expect 'with a direction' 0 '1 timed results' \
    add --history u.db --commit c0000031 --better lower custom.json

# ---- Two at once ----
for i in $(seq 20); do
    bench "x$i.json" "$(printf 'd%07d' "$i")" 10
    bench "y$i.json" "$(printf 'e%07d' "$i")" 10
done
for letter in x y; do
    for i in $(seq 20); do
        "$cts" track add --quiet --history two.db "$letter$i.json" ||
            echo "exit $?" >>two.err
    done &
done
wait
result 'two processes at once' "$(cat two.err 2>/dev/null)"
result 'lost nothing' "$([ "$(runs two.db)" -eq 40 ] || runs two.db)"

# ---- Killed in the middle: all or nothing, and the next one goes on ----
kills=0
for i in $(seq 40); do
    bench k.json "$(printf 'f%07d' "$i")" 10
    "$cts" track add --quiet --history k.db report.jsonl k.json \
        --commit "$(printf 'f%07d' "$i")" 2>/dev/null &
    pid=$!
    sleep "0.0$((i % 4))$((i % 10))"
    kill -9 "$pid" 2>/dev/null && kills=$((kills + 1))
    wait "$pid" 2>/dev/null
done 2>/dev/null
expect 'after kill -9' 0 'run' add --history k.db --commit abcd0001 report.jsonl
result 'killed some' "$([ "$kills" -gt 5 ] || echo "only $kills")"
expect 'whole runs only' 0 'regressions' check --history k.db
why=$("$cts" track export --history k.db --format csv k.csv 2>&1 &&
    awk -F, 'NR > 1 { n[$1]++ }
        END { for (r in n) if (n[r] != 19 && n[r] != 20) print r, n[r] }' k.csv)
result 'no run has a part' "$why"

# ---- A full disk ----
cp t.db full.db
before=$(sha256sum <full.db)
why=$( (ulimit -f $(($(stat -c %s full.db) / 2048))
    "$cts" track add --history full.db report.jsonl --commit abcd0002 \
        >full.out 2>full.err
    echo $?))
[ "$why" = 74 ] && why=''
result 'a full disk: exit 74' "$why"
result 'a full disk: one line' "$([ "$(wc -l <full.err)" -eq 1 ] ||
    cat full.err)"
"$cts" track check --quiet --history full.db >/dev/null 2>&1
result 'a full disk: nothing changed' \
    "$([ "$(sha256sum <full.db)" = "$before" ] || echo 'the history did')"
why=$( (ulimit -f 1
    "$cts" track report --history t.db page.html >/dev/null 2>full.err
    echo $?))
[ "$why" = 74 ] && why=''
result 'no half of a page' "$why$(find . -name 'page.html*')"

# ---- What is no history ----
head -c 4096 /dev/urandom >noise.db
expect 'noise' 65 'is no database' check --history noise.db
expect 'noise to add to' 65 'is no database' \
    add --history noise.db --commit abcd0003 report.jsonl
: >empty.db
expect 'an empty file' 65 'is empty' check --history empty.db
expect 'becomes a history' 0 'run 1' \
    add --history empty.db --commit abcd0003 report.jsonl
head -c 3000 t.db >cut.db
expect 'a history that was cut off' 65 'cut.db' check --history cut.db
expect 'a folder' 74 'repository' check --history repository

expect 'rates of change points' 0 'found within 5 runs' selftest --quiet

# ---- Short histories ----
# The table is that of docs/tracking.md, and a halving at run 4 of 28 is called.
expect 'short histories' 0 'without a change' selftest --short
result 'a halving at run 4' "$(awk '$1 == 50 && $2 == "%" { print $8, $10, $11 }' out |
    grep -vx '4 4 (100')"
for run in 1 2 3; do
    bench "b$run.json" "$(printf '%040d' "$run")" 1000
    "$cts" track add --history young.db "b$run.json" >out 2>err
done
expect 'a young history says so' 0 'nothing can be called before run 13' \
    check --history young.db
bench b4.json "$(printf '%040d' 4)" 500
"$cts" track add --history young.db b4.json >out 2>err
expect 'a halving' 1 '1000 -> 500 (-50.00 %, too large for a test)' \
    check --history young.db

# ---- For programs and pipelines ----
expect 'JSON' 1 '"regression_causes": 1' check --history young.db --json
if command -v jq >/dev/null; then
    result 'it is JSON' "$(jq -e '.changes[0] | .worse and .before == 1000 and
        .after == 500 and .first_with.run == 4' out 2>&1 >found || cat err found)"
fi
expect 'Markdown' 1 '| **regression** | impl | tokens/s | `step.gpt.k2.impl` | 1000 &rarr; 500 (-50.00 %) |' \
    check --history young.db --markdown
"$cts" track report --history young.db \
    --commit-url 'https://example.org/c?a=1&b=' page.html >out 2>err
result 'commits are links' "$(
    grep -c "<a href=\"https://example.org/c?a=1&amp;b=$(printf '%040d' 4)\"><code>" \
        page.html >found || echo 'they are not')"
"$cts" track report --history young.db page.html >out 2>err
result 'or are none' "$(grep -o 'href="http[^"]*"' page.html)"

finish 5

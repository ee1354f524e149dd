#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# shard_test.sh - a run in three parts, each recorded by itself, is judged as
# the same run in one; and where records go that nobody keeps.
#
# usage: shard_test.sh FSDP-CTS [INCLUDE-FOLDER]
set -uo pipefail

# shellcheck source=conformance/cli/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/../checks.sh"
selection=(--workload linear --ranks 2)

record() # FOLDER [OPTION ...]
{
    local to=$1
    shift
    "$cts" run "${selection[@]}" --quiet --records "$folder/$to" "$@" \
        >"$folder/out" 2>"$folder/err" || cat "$folder/out" "$folder/err"
}

# What verify finds of these folders; times and places left out.
judge() # NAME FOLDER ...
{
    local name=$1
    shift
    (cd "$folder" && "$cts" verify "$@" "${selection[@]}" \
        --report "$folder/report" >"$folder/$name" 2>&1)
    echo "code $?" >>"$folder/$name"
    sed -E 's/"(started|ended|seconds|milliseconds|records)":("[^"]*"|[0-9.e+-]+),?//g' \
        "$folder/report" >"$folder/$name.jsonl"
    sed -i -E '/records|seconds|^time/d' "$folder/$name"
}

record whole --record-only
for i in 1 2 3; do
    record "part$i" --shard "$i/3"
done
judge one whole
judge three part1 part2 part3
judge two part1 part3

why=''
cmp -s "$folder/one" "$folder/three" ||
    why=$(diff "$folder/one" "$folder/three" | head -4)
grep -q ' 0 .*INCOMPLETE' "$folder/one" || why="$(tail -3 "$folder/one")"
result "three parts: the same tables, verdict and code as of one run" "$why"

why=''
cmp -s "$folder/one.jsonl" "$folder/three.jsonl" ||
    why=$(diff "$folder/one.jsonl" "$folder/three.jsonl" | head -c 400)
[ "$(wc -l <"$folder/one.jsonl")" -gt 100 ] || why="no report"
result "three parts: the same report" "$why"

why=''
cmp -s "$folder/one.jsonl" "$folder/two.jsonl" && why="not noticed"
grep -q 'there is no record' "$folder/two.jsonl" || why="nothing is missing"
result "two of three parts are not the run" "$why"

all=$(find "$folder/whole/ref" -name case.json | wc -l)
parts=$(find "$folder"/part?/ref -name case.json | wc -l)
why=''
[ "$all" -gt 3 ] && [ "$all" = "$parts" ] || why="$all cases, parts: $parts"
result "each case is in one part" "$why"

for bad in 0/3 4/3 x 1 1/0 -1/3 1/3/3 /3 1/ 1/99999999999 1/1000; do
    "$cts" run "${selection[@]}" --records "$folder/bad" --shard "$bad" \
        >"$folder/out" 2>"$folder/err"
    code=$?
    why=''
    [ "$code" = 64 ] || why="exit $code"
    [ "$(wc -l <"$folder/err")" = 1 ] && [ ! -s "$folder/out" ] ||
        why="said $(cat "$folder/out" "$folder/err")"
    result "--shard $bad is refused" "$why"
done
"$cts" run "${selection[@]}" --shard 1/3 >"$folder/out" 2>"$folder/err"
code=$?
why=''
[ "$code" = 64 ] && [ "$(wc -l <"$folder/err")" = 1 ] || why="exit $code"
result "--shard without --records is refused" "$why"

"$cts" run "${selection[@]}" --engine ref --record-only --quiet \
    --records "$folder/other" >"$folder/out" 2>&1
"$cts" verify "$folder/part1" "$folder/other" "${selection[@]}" \
    >"$folder/out" 2>"$folder/err"
code=$?
why=''
[ "$code" = 65 ] && [ "$(wc -l <"$folder/err")" = 1 ] ||
    why="exit $code: $(cat "$folder/err")"
result "parts of different engines are refused" "$why"

# Of the folders in memory that no run has locked, old ones go.
memory=/dev/shm
if [ -w $memory ] && [ -x $memory ]; then
    old=$(mktemp -d $memory/fsdp-cts.XXXXXX)
    new=$(mktemp -d $memory/fsdp-cts.XXXXXX)
    used=$(mktemp -d $memory/fsdp-cts.XXXXXX)
    touch "$old/record"
    touch -d '1 hour ago' "$old" "$used"
    (
        flock 9
        unset TMPDIR
        "$cts" run "${selection[@]}" --engine ref --quiet
    ) 9<"$used" >"$folder/out" 2>&1
    why=''
    [ -d "$new" ] && [ -d "$used" ] || why="removed what was in use"
    if [ -d "$old" ]; then # no room in memory: then it is not looked at
        [ "$(df --output=avail -k $memory | tail -1)" -lt 8000000 ] ||
            why="left what was abandoned"
    fi
    rm -rf "$old" "$new" "$used"
    result "what a killed run left in memory is removed" "$why"
fi

# ---- --cover ----
# Each part of an id of the list stays; nothing new comes; what stays is in the
# order of the list.
parts() # FILE
{
    tr . '\n' <"$1" | sort -u
}
"$cts" run --workload mlp --ranks 2,3 --dry-run >"$folder/list"
"$cts" run --workload mlp --ranks 2,3 --dry-run --cover >"$folder/cover"
why=$(diff <(parts "$folder/list") <(parts "$folder/cover"))
n=$(wc -l <"$folder/cover")
[ "$n" -gt 20 ] && [ $((n * 2)) -lt "$(wc -l <"$folder/list")" ] ||
    why="$n cases"
grep -xFf "$folder/cover" "$folder/list" | cmp -s - "$folder/cover" ||
    why="another order, or other cases"
result "--cover: few cases, each part of their ids" "$why"
"$cts" run --case "$(head -1 "$folder/list")" --dry-run --cover \
    >"$folder/out" 2>&1
result "--cover of one case is that case" "$(head -1 "$folder/list" |
    diff - "$folder/out")"
finish 19

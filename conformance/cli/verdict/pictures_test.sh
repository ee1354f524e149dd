#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# pictures_test.sh - run --pictures: the drawings in docs/pictures/ are what the
# program draws, and an id in them is one that the program knows.
#
# usage: pictures_test.sh FSDP-CTS [INCLUDE-FOLDER]
#
# To renew them, run the commands below and copy what they draw.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=conformance/cli/checks.sh
. "$here/../checks.sh"
pictures=$(cd "$here/../../../docs/pictures" && pwd)
cd "$folder" || exit 1
of=mlp.seed.natural.full-shard.k4.flat
tail=rank.s.sgd.steps40

# ---- Drawn from a run ----------------------------------------------------
timeout 120 "$cts" run --engine ref --case "$of.pair.$tail" --pictures pair \
    --record-only --quiet >out 2>err
got=$?
result 'two units' "$([ "$got" -eq 0 ] || cat out err)"
timeout 120 "$cts" run --engine ref --case "$of.layer.$tail" --pictures layer \
    --partial-ok --quiet >out 2>err
got=$?
result 'four units, and a verdict' "$([ "$got" -eq 0 ] || cat out err)"
result 'docs/pictures/step.svg' "$(diff "$pictures/step.svg" pair/step.svg)"
result 'docs/pictures/memory.svg' \
    "$(diff "$pictures/memory.svg" layer/memory.svg)"
left=$(find . -name '*.partial')
result 'nothing is left behind' "$left"

# Each unit is gathered twice and reduced once, on each of the ranks shown.
got=$(grep -c 'class="gather" x' pair/step.svg)
result 'all-gathers' "$([ "$got" -eq 9 ] || echo "$got")" # 8, and the legend's
got=$(grep -c 'class="reduce" x' pair/step.svg)
result 'reduce-scatters' "$([ "$got" -eq 5 ] || echo "$got")"
# An engine that keeps units whole is drawn so: over the bound.
timeout 120 "$cts" run --engine ref --mutant no-reshard \
    --case "$of.layer.$tail" --pictures kept --record-only --quiet >out 2>err
got=$?
result 'a mutant' "$([ "$got" -eq 0 ] || cat out err)"
result 'has another picture' \
    "$(cmp -s layer/memory.svg kept/memory.svg && echo 'the same')"
result 'which shows all that it holds' \
    "$(grep -q '>2592</text>' kept/memory.svg || grep '</text>' kept/memory.svg)"
# ---- Drawn from a report -------------------------------------------------
timeout 120 "$cts" run --engine ref --mutant divide-twice \
    --case "$of.layer.$tail" --records wrong --report wrong.jsonl --quiet \
    >out 2>&1
timeout 60 "$cts" report wrong.jsonl --records wrong --pictures drawn --quiet \
    >out 2>err
got=$?
result 'report --pictures' "$([ "$got" -eq 1 ] || cat err)"
for name in levels curve map; do
    result "docs/pictures/failed-$name.svg" \
        "$(diff "$pictures/failed-$name.svg" "drawn/$name.svg")"
done
got=$(cd drawn && echo *)
want='case-memory.svg collectives.svg curve.svg levels.svg map.svg peaks.svg'
result 'all of them' "$([ "$got" = "$want" ] || echo "$got")"
timeout 60 "$cts" report wrong.jsonl --pictures few --quiet >out 2>err
got=$(cd few && echo *)
result 'without records' "$([ "$got" = 'case-memory.svg levels.svg' ] ||
    echo "$got")"
timeout 60 "$cts" report wrong.jsonl --records pair --pictures none --quiet \
    >out 2>err
got=$?
result 'records of something else' "$([ "$got" -eq 1 ] &&
    [ "$(wc -l <err)" -eq 1 ] || echo "exit $got: $(cat err)")"
for svg in "$pictures"/*.svg; do
    if command -v xmllint >/dev/null; then
        result "$(basename "$svg") is XML" "$(xmllint --noout "$svg" 2>&1)"
    fi
    result "$(basename "$svg") has colours for the dark" \
        "$(grep -q 'prefers-color-scheme: *dark' "$svg" || echo missing)"
done

# ---- What is wrong -------------------------------------------------------
refused() # WHAT, WANTED EXIT, WANTED MESSAGE, ARGUMENT...
{
    local what=$1 want=$2 message=$3
    shift 3
    timeout 60 "$cts" run "$@" --record-only --quiet >out 2>err
    got=$?
    result "$what" "$([ "$got" -eq "$want" ] || echo "exit $got")"
    result "$what says why" "$(grep -q -e "$message" err || cat err)"
}
refused 'several cases' 64 '--pictures is about one case' \
    --engine ref --ranks 3 --pictures several
refused 'several engines' 64 '--pictures is about one engine' \
    --engine ref,impl --case "$of.pair.$tail" --pictures several
refused 'no such folder' 74 'picture no/such/folder: No such file' \
    --engine ref --case "$of.pair.$tail" --pictures no/such/folder
cancelled=$("$cts" list cases | grep -m 1 '^mlp.*\.cancel$')
refused 'a cancelled pass' 2 'a window of rank 0 never closes' \
    --engine ref --case "$cancelled" --pictures several
refused 'a case without steps' 2 'has no timeline to draw' \
    --engine ref --case mlp.seed.natural.full-shard.k2.flat.layer.rank.s.sgd.options \
    --pictures several
result 'no pictures of those' "$(ls several 2>/dev/null)"

# ---- The levels ----------------------------------------------------------
# Each step of the staircase names a level and one of its requirements.
"$cts" list requirements >requirements
levels()
{
    sed -nE 's/.*class="level"[^>]*>([0-9]) ([a-z]+)<.*/\1 \2/p' "$1"
}
ids()
{
    sed -nE 's/.*class="id"[^>]*>([a-z.-]+)<.*/\1/p' "$1"
}
check_stairs() # FILE
{
    local level id n=0
    [ "$(levels "$1" | wc -l)" -eq 9 ] || echo 'there are not nine levels'
    while read -r level id; do
        awk -v id="$id" -v level="${level#* }" '
            $1 == id && $3 == level { found = 1 }
            END { exit !found }' requirements ||
            echo "no requirement $id of level $level"
        n=$((n + 1))
    done < <(paste -d ' ' <(levels "$1" | cut -d ' ' -f 2) <(ids "$1"))
    [ "$n" -eq 9 ] || echo "$n requirements"
}
result 'levels.svg names what there is' \
    "$(check_stairs "$pictures/levels.svg")"
sed 's/reduce\.scale/reduce.scales/' "$pictures/levels.svg" >wrong.svg
result 'an unknown id is noticed' \
    "$([ -n "$(check_stairs wrong.svg)" ] || echo 'it is not')"
finish 38

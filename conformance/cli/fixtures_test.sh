#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# fixtures_test.sh - records are judged by golden data alone: good ones pass,
# and ones that are cut, mixed up, of other data, short of a rank, not a number
# or with more fields than there are never do. New cases come from new seeds.
#
# usage: fixtures_test.sh FSDP-CTS [INCLUDE-FOLDER]
set -uo pipefail

# shellcheck source=conformance/cli/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"
golden=$PWD/fixtures/golden

# Judges $folder/records by the golden data; sets code.
verify() # [OPTION ...]
{
    "$cts" verify "$folder/records" --fixtures "$golden" --partial-ok --quiet \
        "$@" >"$folder/out" 2>"$folder/err"
    code=$?
}

fresh()
{
    rm -rf "$folder/records"
    cp -r "$golden/records" "$folder/records"
    rm -rf "$folder/records/baseline" # the golden ones are looked at
}

want() # WHAT CODE PATTERN-IN-ERR-OR-NOTHING [OPTION ...]
{
    local what=$1 expected=$2 pattern=$3

    shift 3
    verify "$@"
    result "$what" "$([ $code = "$expected" ] &&
        grep -q -- "$pattern" "$folder/out" "$folder/err" ||
        echo "exit $code, not $expected: $(cat "$folder/out" "$folder/err")")"
}

id=mlp.odd.natural.full-shard.k4.flat.layer.rank.ns.sgd
[ -d "$golden/records/$id" ] || { echo "no $id in $golden"; exit 1; }
rank=$folder/records/$id/rank-2.json

fresh
want 'the golden records' 0 PASSED
want 'one of them' 0 PASSED --case $id
want 'a case that they lack' 64 'no case' --case nonesuch
head -c 900 "$golden/records/$id/rank-2.json" >"$rank"
want 'a file that is cut' 65 'rank-2.json' --case $id
fresh
head -c 900 "$golden/records/$id/rank-2.safetensors" \
    >"$folder/records/$id/rank-2.safetensors"
want 'tensors that are cut' 65 'rank-2.safetensors' --case $id
fresh
cp "$golden/records/$id"/rank-1.* "$folder/" &&
    sed 's/"rank": 1/"rank": 2/' "$folder/rank-1.json" >"$rank"
cp "$folder/rank-1.safetensors" "$folder/records/$id/rank-2.safetensors"
want 'a rank in place of another' 1 NON-CONFORMANT --case $id
fresh
rm "$rank"
want 'a rank that is missing' 1 NON-CONFORMANT --case $id
fresh
rm -r "${folder:?}/records/$id"
want 'a case that is missing' 2 INCOMPLETE --case $id
fresh
other=mlp.odd.natural.full-shard.k2.flat.layer.rank.ns.sgd
cp "$golden/records/$other"/* "$folder/records/$id/"
want 'the record of another case' 65 "$id" --case $id
fresh
awk '/"losses"/ { n = NR } n && NR == n + 1 {
    sub(/\[[^,]*, "[^"]*"\]/, "[\"nan\", \"0x7fc00000\"]") } { print }' \
    "$golden/records/$id/rank-2.json" >"$rank"
result 'a NaN was planted' "$(grep -q '"nan"' "$rank" || echo no)"
want 'a loss that is NaN' 1 NON-CONFORMANT --case $id
fresh
sed 's/"rank": 2,/"rank": 2, "more": 1,/' "$golden/records/$id/rank-2.json" \
    >"$rank"
want 'a field more' 65 more --case $id
fresh
sed 's/"version": [0-9]*/"version": 99/' "$golden/records/$id/rank-2.json" \
    >"$rank"
want 'another version' 65 version --case $id

# Golden data that are not those of their manifest judge nothing.
cp -r "$golden" "$folder/golden"
golden=$folder/golden
fresh
want 'a copy of them' 0 PASSED --case $id
printf ' ' >>"$golden/cases/$id/case.json"
want 'another file' 65 'manifest' --case $id
cp -r "$PWD/fixtures/golden/cases/$id/case.json" "$golden/cases/$id/case.json"
touch "$golden/cases/more"
want 'a file more' 65 'manifest' --case $id
rm "$golden/cases/more" "$golden/cases/$id/case.json"
want 'a file less' 65 'manifest' --case $id
rm "$golden/manifest.json"
want 'no manifest' 65 'manifest' --case $id

# New cases.
"$cts" run --engine ref --ranks 3 --workload linear --fresh-seed --quiet \
    --partial-ok --records "$folder/new" >"$folder/out" 2>"$folder/err"
code=$?
seed=$(sed -n 's/.*--seed \([0-9]*\).*/\1/p' "$folder/err")
result 'a fresh seed' "$([ $code = 0 ] && [ -n "$seed" ] || cat "$folder/err")"
"$cts" verify "$folder/new" --ranks 3 --workload linear --seed "$seed" \
    --quiet --partial-ok >"$folder/out" 2>&1
result 'its records' "$([ $? = 0 ] || cat "$folder/out")"
"$cts" verify "$folder/new" --ranks 3 --workload linear --seed 3 --quiet \
    --partial-ok >"$folder/out" 2>&1
result 'of no other seed' "$([ $? = 2 ] || cat "$folder/out")"

finish 1

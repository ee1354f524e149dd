#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# verify_test.sh - records that are cut, reordered, short of a rank, not a
# number, of another version or with more than there is are refused or fail,
# and never pass: of the suite's own arithmetic, judged bit for bit by golden
# data, and of PyTorch's, judged by bounds.
#
# usage: verify_test.sh FSDP-CTS [INCLUDE-FOLDER]
set -uo pipefail

# shellcheck source=conformance/cli/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"
golden=$PWD/fixtures/golden

# Two sources: where the record is, its case, how its baseline is found.
own=mlp.odd.natural.full-shard.k4.flat.layer.rank.ns.sgd
other=mlp.odd.natural.full-shard.k3.per-parameter.layer.rank.ns.momentum
kept=$PWD/fixtures/records/pytorch-fsdp2
"$cts" run --engine ref --case $other --record-only --quiet \
    --records "$folder/made" >"$folder/out" 2>&1 || { cat "$folder/out"; exit 1; }

use() # SOURCE
{
    source=$1
    if [ "$source" = own ]; then
        id=$own
        from=$golden/records/$id
        options=(--fixtures "$golden")
    else
        id=$other
        from=$kept/$id
        options=()
    fi
    at=$folder/records/$id
    # A copy with JSON in one line, so that sed can reach over it.
    rm -rf "$folder/whole"
    mkdir -p "$folder/whole"
    [ "$source" = own ] || cp -r "$folder/made/baseline" "$folder/whole/"
    cp -r "$from" "$folder/whole/$id"
    for file in "$folder/whole/$id"/*.json; do
        tr -d '\n' <"$file" | sed 's/ \+/ /g' >"$folder/line" &&
            cp "$folder/line" "$file"
    done
}

fresh()
{
    rm -rf "$folder/records"
    cp -r "$folder/whole" "$folder/records"
}

verify()
{
    timeout 60 "$cts" verify "$folder/records" ${options[@]+"${options[@]}"} \
        --case "$id" --partial-ok --quiet --report "$folder/report" \
        >"$folder/out" 2>"$folder/err"
    code=$?
    failures=$(sed -n 's/.*"requirement":"\([^"]*\)".*"outcome":"fail".*/\1/p' \
        "$folder/report" 2>/dev/null | sort -u | tr '\n' ' ')
}

want() # WHAT CODE PATTERN: in what is printed, or in what fails
{
    rm -f "$folder/report"
    verify
    result "$source: $1" "$([ $code = "$2" ] &&
        grep -q -- "$3" <<<"$(cat "$folder/out" "$folder/err") $failures" ||
        echo "exit $code, not $2 with '$3': $failures $(cat "$folder/out" \
            "$folder/err")")"
}

spoil() # WHAT CODE PATTERN FILE EXPRESSION: sed's, one that must find something
{
    fresh
    cp "$at/$4" "$folder/before"
    LC_ALL=C sed -i "$5" "$at/$4"
    cmp -s "$folder/before" "$at/$4" && result "$source: $1" 'nothing was spoiled'
    want "$1" "$2" "$3"
}

both()
{
    fresh
    want 'as it is' 0 PASSED

    # ---- Cut ----
    local file size cut n=0
    for file in case.json rank-1.json rank-2.safetensors; do
        size=$(stat -c %s "$from/$file")
        for cut in 0 7 9 $((size / 3)) $((size - 5)) $((size - 1)); do
            # The white space at the end of a file is none that it lacks.
            [ "$file" != "${file%.json}" ] && [ "$cut" = $((size - 1)) ] &&
                continue
            fresh
            head -c "$cut" "$from/$file" >"$at/$file"
            verify
            [ $code = 65 ] && grep -q "$file\|$id" "$folder/err" ||
                result "$source: $file cut at $cut" "exit $code"
            n=$((n + 1))
        done
    done
    result "$source: $n cuts" "$([ $n -gt 15 ] || echo too few)"
    fresh
    printf 'x' >>"$at/rank-1.json"
    want 'something behind the end' 65 'rank-1.json'
    fresh
    printf 'xxxx' >>"$at/rank-2.safetensors"
    want 'more data than tensors' 65 'rank-2.safetensors'
    fresh
    : >"$at/rank-2.safetensors"
    want 'an empty file of tensors' 65 'rank-2.safetensors'

    # ---- Reordered ----
    spoil 'two losses' 1 'num\.' rank-1.json \
        's/"losses": \[ *\(\[[^]]*\]\), *\(\[[^]]*\]\)/"losses": [\2, \1/'
    spoil 'two collectives' 1 'comm\.' rank-1.json \
        's/\(\["all-gather"[^]]*\]\), *\(\["reduce-scatter"[^]]*\]\)/\2, \1/'
    fresh
    sed 's/"rank": 1/"rank": 2/' "$at/rank-1.json" >"$folder/x"
    sed 's/"rank": 2/"rank": 1/' "$at/rank-2.json" >"$at/rank-1.json"
    cp "$folder/x" "$at/rank-2.json"
    cp "$at/rank-1.safetensors" "$folder/x"
    cp "$at/rank-2.safetensors" "$at/rank-1.safetensors"
    cp "$folder/x" "$at/rank-2.safetensors"
    want 'two ranks' 1 'layout\.\|grad\.'
    fresh
    sed 's/"rank": 1/"rank": 2/' "$at/rank-1.json" >"$at/rank-2.json"
    cp "$at/rank-1.safetensors" "$at/rank-2.safetensors"
    want 'a rank twice' 1 'layout\.\|grad\.'
    spoil 'steps of gradients' 1 'reduce\.\|accumulate\.' rank-1.safetensors \
        's/"reduced\.0\./"reduced.X./g; s/"reduced\.1\./"reduced.0./g; s/"reduced\.X\./"reduced.1./g'
    spoil 'weights before and after' 1 'step\.\|gather\.' rank-1.safetensors \
        's/"before\.0\./"XXXXXX.0./g; s/"after\.0\./"before.0./g; s/"XXXXXX\.0\./"after.0./g'
    spoil 'microbatches' 1 'grad\.\|accumulate\.' rank-1.safetensors \
        's/"local-gradient\.0\.0\./"local-gradient.0.X./g; s/"local-gradient\.0\.1\./"local-gradient.0.0./g; s/"local-gradient\.0\.X\./"local-gradient.0.1./g'
    spoil 'parameters' 1 'layout\.\|gather\.\|grad\.' rank-1.safetensors \
        's/"unsharded\.0\.0\.0#/"unsharded.0.0.X#/g; s/"unsharded\.0\.0\.1#/"unsharded.0.0.0#/g; s/"unsharded\.0\.0\.X#/"unsharded.0.0.1#/g'

    # ---- A rank is missing ----
    fresh
    rm "$at/rank-2.json"
    want 'without the JSON of a rank' 1 'run.ranks-present'
    fresh
    rm "$at/rank-2.safetensors"
    want 'without the tensors of a rank' 1 'run.ranks-present'
    fresh
    rm "$at"/rank-*
    want 'without all ranks' 1 'run.ranks-present'
    spoil 'a rank fewer in case.json' 65 'case.json.*ranks' case.json \
        's/\("ranks": \[\) *{[^}]*},/\1/'
    spoil 'another number of ranks' 65 'case.json' case.json \
        's/"ranks": \([34]\),/"ranks": 2,/'
    fresh
    cp "$at/rank-1.json" "$at/rank-9.json"
    want 'a rank more' 65 'rank-9.json'

    # ---- Not a number ----
    local nan='["nan", "0x7fc00000"]'
    for rank in 0 1 2; do
        spoil "the first loss of rank $rank" 1 'num.loss-finite' \
            rank-$rank.json 's/"losses": \[ *\[[^]]*\]/"losses": ['"$nan"/
    done
    spoil 'all losses of a rank' 1 'num.loss-finite' rank-1.json \
        ':a; s/\[-\?[0-9][0-9.e-]*, "0x[0-9a-f]*"\]/'"$nan"'/; ta'
    spoil 'an infinite loss' 1 'num.loss-finite' rank-1.json \
        's/"losses": \[ *\[[^]]*\]/"losses": [["inf", "0x7f800000"]/'
    spoil 'a decimal that is not the bits' 65 'rank-1.json.*decimal' \
        rank-1.json 's/"losses": \[ *\[[^,]*,/"losses": [[0.123,/'
    spoil 'JSON has no NaN' 65 'rank-1.json' rank-1.json \
        's/"losses": \[ *\[[^,]*,/"losses": [[NaN,/'
    local header
    header=$(od -An -tu8 -N8 "$from/rank-1.safetensors" | tr -d ' ')
    fresh
    printf '\377\377\377\177' | dd of="$at/rank-1.safetensors" bs=1 conv=notrunc \
        seek=$((8 + header)) 2>/dev/null
    want 'a tensor' 1 '\.'

    # ---- More than there is ----
    local where
    for where in 'case.json ^{' 'case.json "case":@{' 'case.json "ranks":@\[ *{' \
        'rank-1.json ^{' 'rank-1.json "memory":@{' 'rank-1.json "races":@{'; do
        spoil "a field in $where" 65 extra "${where%% *}" \
            "s/\($(tr '@' ' ' <<<"${where#* }")\)/\1\"extra\": 1, /"
    done
    spoil 'a field twice' 65 'rank-1.json.*duplicate' rank-1.json \
        's/^{/{"rank": 1, /'
    spoil 'another element in a collective' 65 'rank-1.json.*sequences' \
        rank-1.json 's/\["all-gather"/["all-gather", 0/'
    spoil 'a tensor that no stage has' 65 'rank-1.safetensors' \
        rank-1.safetensors 's/"reduced\.0/"reducee.0/'
    spoil 'a tensor that is not counted' 65 'tensors' rank-1.json \
        's/"tensors": \([0-9]*\)/"tensors": 1\1/'
    spoil 'a step more' 65 'rank-1.json.*steps\|rank-1.json' rank-1.json \
        's/"step_sequences": \[/"step_sequences": [0, /'
    spoil 'a loss more' 65 'rank-1.json.*losses' rank-1.json \
        's/"losses": \[/"losses": [[1, "0x3f800000"], /'
    spoil 'a control character' 65 'claims.*control' case.json \
        's/"claims": \[/"claims": ["a\\u0001", /'

    # ---- Another version ----
    spoil 'of case.json' 65 'version.*99' case.json \
        's/"version": 2/"version": 99/'
    spoil 'of a rank' 65 'version.*99' rank-1.json \
        's/"version": 2/"version": 99/'
    spoil 'of the tensors' 65 'record-version' rank-1.safetensors \
        's/"record-version":"1"/"record-version":"2"/'
    spoil 'the number is a text' 65 'version' rank-1.json \
        's/"version": 2/"version": "2"/'

    # ---- Huge numbers ----
    spoil 'a collective of 2^63 elements' 1 'comm\.' rank-1.json \
        's/\(\["all-gather", "shard", "f32", "[a-z]*", 0, 0, \)[0-9]*/\1"9223372036854775808"/'
    spoil 'a number that is too large' 65 'rank-1.json' rank-1.json \
        's/"peak_engine": [0-9]*/"peak_engine": 99999999999999999999/'
    spoil 'a number below 0' 65 'rank-1.json' rank-1.json \
        's/"peak_engine": [0-9]*/"peak_engine": -1/'
    spoil 'a tensor that begins elsewhere' 1 '\.' rank-1.safetensors \
        's/"final\.4\.0\.2#2"/"final.4.0.2#7"/'
}

use own
both
use other
both

# ---- Golden data of another version say which ----
use own
cp -r "$golden" "$folder/golden"
options=(--fixtures "$folder/golden")
manifest=$folder/golden/manifest.json
fresh
want 'a copy of the golden data' 0 PASSED
for spoiled in 's/"interpretation": 1/"interpretation": 2/' \
    's/"specification": "[^"]*"/"specification": "9.9"/' \
    's/"content": "[^"]*"/"content": "2031.01"/'; do
    sed -i "$spoiled" "$manifest"
    want "$spoiled" 65 'this program knows'
    cp "$golden/manifest.json" "$manifest"
done
sed -i 's/^{/{"extra": 1,/' "$manifest"
want 'a manifest with a field more' 65 'extra'
head -c 500 "$golden/manifest.json" >"$manifest"
want 'a manifest that is cut' 65 'manifest.json'
# A baseline of other data, and a manifest that fits it.
cp "$golden/manifest.json" "$manifest"
key=$(cd "$golden/records/baseline" && printf '%s\n' mlp.odd.natural.seed1.k4* |
    sed -n 1p)
printf ' ' >>"$folder/golden/records/baseline/$key/rank-0.json"
want 'an unsharded run that is changed' 65 'rank-0.json\|manifest'

finish 101

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# sample_test.sh - records in which a few ranks alone show whole parameters: all
# else is what whole records have, byte for byte; they are judged the same by
# run and by verify, and say everywhere what they are; and a fault of a rank
# that was not drawn is found, with its name.
#
# usage: sample_test.sh FSDP-CTS [INCLUDE-FOLDER]
set -uo pipefail

# shellcheck source=conformance/cli/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/../checks.sh"
cd "$folder" || exit 1

flat=mlp.odd.natural.full-shard.k16.flat.layer.rank.ns.momentum
cases=$flat,mlp.odd.natural.hybrid-shard.k16r2.per-parameter.layer.ring.s.adamw

# play FOLDER [OPTION ...]: what run says goes to FOLDER.out, its code behind it
play()
{
    local at=$1
    shift
    "$cts" run --case "$cases" --ranks 16 --records "$at" "$@" \
        >"$at.out" 2>"$at.err"
    echo "code $?" >>"$at.out"
}

# unsampled FOLDER: the ranks of its first case that were not drawn
unsampled()
{
    awk '/"ranks":/ {at = 1; next} at && /"end":/ {
        if (/"unsampled": true/)
            print n + 0
        n++
    }' "$1/$flat/case.json"
}

# What is of ranks and not of time, or of what a process is.
plain()
{
    sed -E -e '/^ *"seconds":/d' -e '/"process_growth":/d' \
        -e '/"tensors":/d' "$1"
}

for engine in ref impl; do
    play "whole-$engine" --engine "$engine"
    play "some-$engine" --engine "$engine" --sample-ranks 4
    result "$engine: all of it passes" "$(
        for of in whole some; do
            grep -qx 'code 0' "$of-$engine.out" || tail -5 "$of-$engine.out"
        done)"
    unsampled "some-$engine" >"$engine.left"
    result "$engine: 4 of 16 ranks are drawn, and rank 0 is one" "$(
        [ "$(wc -l <"$engine.left")" -eq 12 ] || cat "$engine.left"
        ! grep -qx 0 "$engine.left" || echo "not rank 0")"
    result "$engine: ranks say what they say in whole records" "$(
        n=0
        for file in "whole-$engine"/*/rank-*.json; do
            n=$((n + 1))
            cmp <(plain "$file") <(plain "some-$engine/${file#*/}") || break
        done 2>&1
        [ "$n" -eq 32 ] || echo "$n files")"
    result "$engine: tensors of drawn ranks are whole, others are less" "$(
        for k in {0..15}; do
            at=$flat/rank-$k.safetensors
            if grep -qx "$k" "$engine.left"; then
                [ "$(stat -c %s "some-$engine/$at")" -lt \
                    "$(stat -c %s "whole-$engine/$at")" ] || echo "rank $k"
            else
                cmp "some-$engine/$at" "whole-$engine/$at" 2>&1
            fi
        done)"
done
result 'the run says which' "$(
    diff <(sed -n 's/^fsdp-cts: of 16 ranks these show .*: //p' some-ref.err |
        tr ' ' '\n') <(seq 0 15 | grep -vxFf ref.left))"
result 'the same ranks are drawn again' "$(cmp ref.left impl.left 2>&1)"

# What is said of it, and where.
said='whole parameters of 4 of 16 ranks'
result 'the verdict says it' "$(
    grep -q "^INCOMPLETE (.*, $said; all of it passed)" some-ref.out &&
        grep -q "^sampled: $said; not asked.*: .*reduce.scale" some-ref.out ||
        tail -4 some-ref.out)"
result 'of whole records nothing is said' "$(
    grep -i 'sampled\|whole parameters' whole-ref.out)"
"$cts" verify some-ref --case "$cases" --report some.jsonl >verified.out 2>&1
echo "code $?" >>verified.out
result 'verify finds the same' "$(
    diff <(grep -vE '^(time|.*records|.*seconds)' some-ref.out |
        sed -n '/^requirement/,$p') \
        <(grep -vE '^(time|.*records|.*seconds)' verified.out |
            sed -n '/^requirement/,$p') | head -5)"
"$cts" report some.jsonl >reported.out 2>&1
result 'a report says it, and its page' "$(
    grep -q "^sampled: $said" reported.out || tail -4 reported.out
    "$cts" report some.jsonl --records some-ref --html some.html 2>&1 >/dev/null
    grep -q "$said" some.html || echo 'not the page')"
play strict --engine ref --sample-ranks 4 --strict
result '--strict wants a verdict' "$(
    grep -qx 'code 2' strict.out || tail -1 strict.out)"

# Another seed of the data draws others.
"$cts" run --engine ref --case "$cases" --seed 5 --sample-ranks 4 \
    --records seed --record-only --quiet >out 2>&1
result 'another seed draws other ranks' "$(
    flat=$flat.seed5 unsampled seed >seed.left
    [ "$(wc -l <seed.left)" -eq 12 ] || cat out seed.left
    ! cmp -s seed.left ref.left || echo 'the same')"

# A rank that was not drawn errs alone; so it is, and with which rank: there is
# a mutant whose rank 1 forgets the step.
result 'rank 1 was not drawn' "$(grep -qx 1 ref.left || cat ref.left)"
play wrong --engine ref --sample-ranks 4 --mutant rank-without-step
result 'a fault of such a rank is found, with its name' "$(
    grep -qx 'code 1' wrong.out &&
        grep -q '^fail step.every-element-changes' wrong.out &&
        grep -qE '^  where .* rank 1,' wrong.out ||
        head -c 600 wrong.out)"

# spoilt WHAT FILE SED-EXPRESSION EXPECTED-CODE EXPECTED: one number is changed
spoilt()
{
    local code
    rm -rf spoilt
    mkdir -p spoilt
    cp -r some-ref/. spoilt
    sed -i -E "$3" "spoilt/$flat/$2"
    if cmp -s "spoilt/$flat/$2" "some-ref/$flat/$2"; then
        result "$1" 'nothing was changed'
        return
    fi
    "$cts" verify spoilt --case "$flat" >out 2>&1
    code=$?
    result "$1" "$([ "$code" -eq "$4" ] && grep -qE "$5" out ||
        { echo "exit code $code"; head -c 600 out; })"
}
spoilt 'a count of such a rank is found, with its name' rank-1.json \
    '0,/\["all-gather", (.*), ([0-9]+)\]/s//["all-gather", \1, 1\2]/' 1 \
    'rank 1'
spoilt 'bytes of such a rank are found, with its name' rank-1.json \
    's/"left_live": 0/"left_live": 8/' 1 'rank 1'
spoilt 'nobody draws ranks of his own' case.json \
    '0,/, "unsampled": true/s///' 65 'not what the seed draws'

for bad in 0 -1 x 17 513 4x ''; do
    "$cts" run --engine ref --case "$flat" --sample-ranks "$bad" >out 2>err
    code=$?
    result "--sample-ranks '$bad' is refused in a line" "$(
        [ "$code" -eq 64 ] || echo "exit code $code"
        [ "$(wc -l <err)" -eq 1 ] && [ ! -s out ] &&
            grep -q -- --sample-ranks err || cat out err)"
done
"$cts" run --adapter true --case "$flat" --sample-ranks 4 >out 2>err
code=$?
result 'an adapter records by itself' "$(
    [ "$code" -eq 64 ] && [ "$(wc -l <err)" -eq 1 ] || cat out err)"

finish 27

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# miniature_test.sh - ref/miniature.c is a program of its own, yet its losses
# and peaks are those that the suite records, in every bit; and this test
# notices when they are not.
#
# usage: miniature_test.sh FSDP-CTS [INCLUDE-FOLDER]
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=conformance/cli/checks.sh
. "$here/../checks.sh"
root=$(cd "$here/../../.." && pwd)
miniature=$(dirname "$cts")/miniature

# The suite's cases that train as the page does. With eight ranks it has no
# flat layout: rows of the same matrices, and so the same sizes, for 4 steps.
of=mlp.seed.natural.full-shard
tail=rank.s.sgd.steps40
one=$of.k1.flat.layer.$tail
two=$of.k2.flat.layer.$tail
three=$of.k3.flat.layer.$tail
four=$of.k4.flat.layer.$tail
wraps=$of.k4.flat.whole.$tail,$of.k4.flat.pair.$tail
eight=$of.k8.per-parameter.layer.rank.s.sgd

# ---- What both print -----------------------------------------------------
# suite CASE,...: the table that the suite makes from its records.
suite()
{
    "$cts" run --engine ref --partial-ok --verbose --case "$1" 2>&1 |
        sed -n '/^The miniature/,/^$/p; /Exercise/,/^$/p' |
        sed -n 's/^  //p' | grep -v '^Exercise'
}

compare_print() # K CASE,...
{
    local lines
    suite "$2" >"$folder/suite.txt"
    lines=$(wc -l <"$folder/suite.txt")
    "$miniature" "$1" | sed '/^$/d' | head -n "$lines" >"$folder/page.txt"
    [ "$lines" -ge 10 ] || echo "the suite printed $lines lines"
    diff "$folder/suite.txt" "$folder/page.txt"
}

result 'K = 1 prints what the suite prints' "$(compare_print 1 "$one")"
result 'K = 2 prints what the suite prints' "$(compare_print 2 "$two")"
result 'K = 3 prints what the suite prints' "$(compare_print 3 "$three")"
result 'K = 4 prints what the suite prints' \
    "$(compare_print 4 "$four,$wraps")"
result 'the exercise is part of it' \
    "$(grep -q '^    2  .* 4  .* 1536  ' "$folder/suite.txt" || echo missing)"
"$miniature" 0 >"$folder/out" 2>&1
got=$?
result 'no workers' "$([ "$got" -eq 64 ] || echo "exit $got")"

# ---- Every bit -----------------------------------------------------------
needs cc

# Reads the losses of each rank as words of 32 bits, folds them as the page
# does, and prints the steps whose bits differ from the page's; then its peaks.
cat >"$folder/bits.c" <<'END'
#define main page_main
#include "miniature.c"
#undef main

int main(int argc, char **argv)
{
    static float theirs[64][STEPS];
    int steps = argc > 2 ? atoi(argv[2]) : 0;

    K = atoi(argv[1]);
    samples = BATCH / K;
    for (int k = 0; k < K; k++) {
        for (int t = 0; t < steps; t++) {
            if (scanf("%x", (unsigned *)&theirs[k][t]) != 1) {
                printf("the record has too few losses\n");
            }
        }
    }
    train(K, 1, fsdp);
    for (int t = 0; t < steps; t++) {
        float sum = theirs[0][t];
        for (int k = 1; k < K; k++) {
            sum += theirs[k][t];
        }
        sum *= 1.0f / (float)K;
        if (memcmp(&sum, &fsdp[t], sizeof sum) != 0) {
            printf("step %d: %.9g and not %.9g\n", t, fsdp[t], sum);
        }
    }
    for (int k = 0; k < K; k++) {
        printf("peaks %d %d\n", 4 * worker[k].peak,
               4 * (worker[k].resting + worker[k].peak));
    }
}
END
"$cts" run --engine ref --record-only --quiet --records "$folder/records" \
    --case "$one,$two,$three,$four,$eight" >"$folder/out" 2>&1 ||
    result 'the suite runs' "$(cat "$folder/out")"

# compare_bits PROGRAM K CASE STEPS: prints what differs, nothing if all agrees.
compare_bits()
{
    local k record=$folder/records/$3
    for ((k = 0; k < $2; k++)); do
        sed -n '/"losses"/,/"other_losses"/s/.*"\(0x[0-9a-f]*\)".*/\1/p' \
            "$record/rank-$k.json"
    done >"$folder/losses"
    for ((k = 0; k < $2; k++)); do
        sed -nE 's/.*"peak": \[[0-9]+, ([0-9]+),.*/peaks \1/p;
            s/.*"peak_parameters": ([0-9]+),.*/\1/p' "$record/rank-$k.json" |
            paste -sd ' '
    done >"$folder/want"
    [ "$(wc -l <"$folder/losses")" -eq $(($2 * $4)) ] || echo 'no losses'
    "$1" "$2" "$4" <"$folder/losses" | diff "$folder/want" -
}

make_bits() # PAGE PROGRAM
{
    cc -O2 -ffp-contract=off -w -iquote "$(dirname "$1")" \
        -I "$root/conformance/include" "$folder/bits.c" -o "$2" -lm
}

make_bits "$root/ref/miniature.c" "$folder/bits" || exit 1
result 'K = 1, every bit' "$(compare_bits "$folder/bits" 1 "$one" 40)"
result 'K = 2, every bit' "$(compare_bits "$folder/bits" 2 "$two" 40)"
result 'K = 3, every bit' "$(compare_bits "$folder/bits" 3 "$three" 40)"
result 'K = 4, every bit' "$(compare_bits "$folder/bits" 4 "$four" 40)"
result 'K = 8, every bit' "$(compare_bits "$folder/bits" 8 "$eight" 4)"

# ---- That it can fail ----------------------------------------------------
# fault WHAT FROM TO: the page with one change is not the suite's any more.
fault()
{
    mkdir -p "$folder/faulty"
    sed "s|$2|$3|" "$root/ref/miniature.c" >"$folder/faulty/miniature.c"
    if cmp -s "$root/ref/miniature.c" "$folder/faulty/miniature.c"; then
        result "$1" 'the page has no such place'
    elif ! make_bits "$folder/faulty/miniature.c" "$folder/faulty/bits"; then
        result "$1" 'does not compile'
    elif [ -z "$(compare_bits "$folder/faulty/bits" 3 "$three" 40)" ]; then
        result "$1" 'nothing differs'
    else
        result "$1 is noticed" ''
    fi
}

fault 'another sign' 'fmaf(-learning_rate' 'fmaf(learning_rate'
fault 'the last bit of the learning rate' '= 0.05f' '= 0.050000004f'
fault 'a quotient for a product' 'sum \* (1.0f / (float)K)' 'sum / (float)K'
fault 'a gathered unit that counts for ever' \
    'w->gathered -= S > 1' 'w->gathered -= S > 99'
fault 'a shard that lacks its padding' '+ S - 1) / S' ') / S'

# ---- As README builds it -------------------------------------------------
line=$(grep -o 'cc .*ref/miniature\.c.*' "$root/README.md" | head -n 1)
mkdir "$folder/readme"
ln -s "$root/ref" "$root/conformance" "$folder/readme"
(cd "$folder/readme" && eval "$line") >"$folder/out" 2>&1
result "README: $line" "$(diff <("$miniature" 4) "$folder/out")"
finish 17

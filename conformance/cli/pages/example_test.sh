#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# example_test.sh - the failure that the README and docs/interpreting.md show is
# what the program prints for the command above it, and the only one for that
# fault.
#
# usage: example_test.sh FSDP-CTS INCLUDE-FOLDER
set -uo pipefail

# shellcheck source=conformance/cli/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/../checks.sh"
root=$(realpath "$2/../..")
cd "$folder" || exit 1

# shows PAGE WORDS...: its block from `fail` to `rerun` is in what the words
# print.
shows()
{
    local page=$1 got
    shift
    sed -n 's/^ \{4\}//; /^fail /,/^  rerun /p' "$root/$page" >wanted
    "$cts" "$@" >out 2>err
    got=$?
    sed -n '/^fail /,/^  rerun /p' out >shown
    result "$page shows what is printed" "$(
        [ "$got" -eq 1 ] || echo "exit code $got"
        [ "$(wc -l <wanted)" -ge 7 ] || echo "it shows $(wc -l <wanted) lines"
        head -n "$(wc -l <wanted)" shown | diff wanted -
    )"
}
command=$(sed -n '/^\$ build\/bin\/fsdp-cts run .*--mutant/{s/[^ ]* [^ ]* //p;q;}' \
    "$root/README.md")
read -r -a words <<<"$command"
shows README.md "${words[@]}"
grep -o '^fail [a-z.-]*' out >failed
result 'and has one first cause' "$(
    [ "$(head -n 1 failed)" = 'fail reduce.scale' ] || head -n 1 failed
    [ "$(wc -l <failed)" -eq 1 ] || cat failed
)"
shows docs/interpreting.md run --engine ref --mutant divide-twice --case \
    mlp.seed.natural.full-shard.k4.flat.layer.rank.s.sgd.steps40
result 'and is alone' "$(
    [ "$(grep -c '^fail ' out)" = 1 ] || grep '^fail ' out
)"
result 'its levels and sums are those of the run' "$(
    grep -E '^    (level |and [0-9]+ that |NON-CONFORMANT: )' \
        "$root/docs/interpreting.md" | sed 's/^    //' >said
    [ "$(wc -l <said)" -ge 10 ] || echo 'they are not shown'
    grep -vxFf out said | sed 's,^,docs/interpreting.md shows: ,'
    grep -E '^(level |and [0-9]+ that |NON-CONFORMANT: )' out |
        grep -vxFf said | sed 's/^/the run prints: /'
)"

finish 5

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# count_test.sh - `fsdp-cts count`: both engines have the collectives, the bytes
# and the memory that they must, at more ranks than a world can have; wrong
# engines that show in these are found, one that shows in values alone is not;
# and one line for what is no number of ranks.
#
# usage: count_test.sh FSDP-CTS [INCLUDE-FOLDER]
set -uo pipefail
# shellcheck source=conformance/cli/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../cli/checks.sh"
cd "$folder" || exit 1

# counts WHAT CODE TEXT ARGUMENT...: ends with CODE, and TEXT is printed.
counts()
{
    local what=$1 code=$2 text=$3 got

    shift 3
    timeout 120 "$cts" count "$@" >out 2>err
    got=$?
    result "$what" "$(
        [ "$got" -eq "$code" ] || echo "exit code $got"
        grep -F -q -- "$text" out err || head -c 1000 out err)"
}

counts 'ref, eight ranks' 0 'ref: counts and bytes alone: 12 of 12 cases' 8
counts 'impl, eight ranks' 0 '12 of 12 cases, 8 ranks' 8 --engine impl
counts 'a prime number of ranks' 0 '8 of 12 cases, 7 ranks each; those with' 7
counts 'nine ranks are three times three' 0 '12 of 12 cases, 9 ranks' 9
# Eight all-reduces of each rank.
counts 'more than a world can have' 0 ' 6400 collectives ' 800 'linear.tiny.*'
counts 'wrong types' 1 'comm.dtype: rank 0' 4 --mutant gather-as-integers
counts 'memory that is declared as something else' 1 'memory.peak-gradients' 4 \
    --mutant hidden-as-activation
counts 'what is kept too long' 1 'memory.peak-total' 4 --mutant gathered-kept
counts 'of values nothing is said' 0 '12 of 12 cases' 4 --mutant divide-twice

# refuses TEXT ARGUMENT...: 64, and one line that has TEXT.
refuses()
{
    local text=$1

    shift
    counts "count $*" 64 "$text" "$@"
    result "count $*: one line" "$([ "$(wc -l <err)" -eq 1 ] || cat err)"
}

refuses 'K is a number of ranks, 2 to 65536'
refuses 'K is a number of ranks, 2 to 65536' 1
refuses 'K is a number of ranks, 2 to 65536' 65537
refuses 'K is a number of ranks, 2 to 65536' 8x
refuses "no case of 8 ranks is 'gtp.*'" 8 'gtp.*'
refuses 'plays all ranks at once' 8 --engine unsharded
counts 'an engine that serves fewer' 1 'up to 4096 are served' 4097 \
    'linear.tiny.*'
finish 22

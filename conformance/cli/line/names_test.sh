#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# names_test.sh - names on the command line: what was nearly right is told what
# was meant, patterns stand for all that have their form, and a list is what it
# says: nothing empty, nothing twice, a comma of a path with a backslash.
#
# usage: names_test.sh FSDP-CTS INCLUDE-FOLDER
set -uo pipefail

# shellcheck source=conformance/cli/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/../checks.sh"
include=$(realpath "$2")
cd "$folder" || exit 1
case=mlp.seed.natural.full-shard.k4.flat.layer.rank.s.sgd.steps40

# refused WORDS ARGUMENTS...: a usage error, in one line that ends so.
refused()
{
    local words=$1 got
    shift
    "$cts" "$@" >out 2>err
    got=$?
    result "$* is refused" "$(
        [ "$got" -eq 64 ] || echo "exit code $got"
        [ "$(wc -l <err)" -eq 1 ] || echo "$(wc -l <err) lines"
        [ ! -s out ] || echo "says more: $(head -n 1 out)"
        case $(<err) in
        *"$words") ;;
        *) cat err ;;
        esac
    )"
}

# ---- Did you mean ----
refused "did you mean 'run'?" rnu
refused "did you mean 'requirements'?" list requirement
refused "did you mean '--engine'?" run --engnie ref
refused "did you mean '--partial-ok'?" verify --partialok=1 .
refused "did you mean 'ref'?" run --engine rfe
refused "did you mean 'gpt'?" run --workload gtp
refused "did you mean 'full-shard'?" run --strategy fullshard
refused "did you mean 'divide-twice'?" run --mutant divide_twice
refused "did you mean 'divide-twice'?" mutants divide_twice
refused "did you mean 'memory.peak-bound'?" run --requirement memory.peak
refused "did you mean 'threads'?" run --world thread
refused "did you mean 'layout'?" run --level layuot
refused "did you mean '$case'?" run --case "${case/layer/layre}"
# What an id describes can be played, in no list though it is.
refused 'workload mlp has no size "sead"; its first is "seed"' run --case "${case/seed/sead}"
# Nothing is near: nothing is said.
refused 'see: fsdp-cts list workloads' run --workload resnet
refused 'see: fsdp-cts list --help' list xyz

# ---- Lists ----
refused 'a value of the list is empty' run --ranks 2,,3
refused "'2' is there twice" run --ranks 2,3,2
refused "'ref' is there twice" run --engine ref --engine ref
refused 'engine ./nosuch.so: No such file or directory' run --engine ./nosuch.so
refused "or the path of a .so" bench steps --engine nope

"$cts" run --engine ref --engine impl --case "$case" --quiet --partial-ok \
    >out 2>err
result 'two engines, each by its own --engine' "$(
    [ "$(wc -l <out)" -eq 2 ] || cat out err
)"

# ---- Patterns ----
matches() # WHAT, WANTED CASES, ARGUMENTS...
{
    local what=$1 wanted=$2
    shift 2
    "$cts" list cases "$@" >out 2>err
    result "$what" "$(
        [ "$(wc -l <out)" -eq "$wanted" ] ||
            echo "$(wc -l <out) cases, not $wanted: $(head -n 2 err)"
    )"
}
"$cts" list cases >all
matches 'a pattern of cases' "$(grep -c '^mlp\.seed\..*\.k2\.' all)" \
    --case 'mlp.seed.*.k2.*'
matches 'a pattern and an id' \
    "$(("$(grep -c '^gpt\.tiny\.' all)" + 1))" --case "gpt.tiny.*,$case"
matches 'one letter' "$(grep -c '^mlp\..*\.k[23]\.' all)" --case 'mlp.*.k[23].*'
refused 'see: fsdp-cts list cases' list cases --case 'mlp.nope.*'

"$cts" run --engine ref --case "$case" --requirement 'memory.*,comm.order' \
    --report out.jsonl --quiet --partial-ok >out 2>err
result 'a pattern of requirements' "$(
    grep -o '"requirement": *"[a-z0-9-]*\.' out.jsonl | sort -u |
        sed 's/.*"//' | tr -d '\n' >got
    [ "$(<got)" = comm.memory. ] || echo "asked: $(<got)"
    [ "$(grep -o '"memory\.[a-z-]*"' out.jsonl | sort -u | wc -l)" -gt 5 ] ||
        echo 'few of memory'
)"
refused 'see: fsdp-cts list requirements' run --requirement 'nope.*'

# ---- An engine in a folder with a comma ----
if command -v "${CC:-cc}" >/dev/null; then
    mkdir 'a,b c'
    "${CC:-cc}" -std=c11 -shared -fPIC -O1 -ffp-contract=off -I "$include" \
        "$include/../../docs/example/first_engine.c" -o 'a,b c/first.so'
    "$cts" run --engine 'a\,b c/first.so' --case "$case" --quiet --partial-ok \
        >out 2>err
    result 'a comma in the path of an engine' "$(
        [ "$(<out)" = 'PASSED, of a selection: no verdict' ] || cat out err
    )"
    "$cts" run --engine 'a\,b c/first.so' --case "$case" --records kept \
        --record-only >out 2>err
    "$cts" run --engine 'a\,b c/first.so' --case "$case" \
        --requirement comm.order --quiet --report out.jsonl >out 2>err
    result 'and in what runs it again' "$(
        grep -o "engine 'a[^']*'" out.jsonl | sort -u >got
        # shellcheck disable=SC1003  # the backslashes of JSON
        [ "$(<got)" = "engine 'a"'\\,b c/first.so'"'" ] || cat got
    )"
fi

finish 30

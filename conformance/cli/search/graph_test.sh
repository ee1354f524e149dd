#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# graph_test.sh - random cases: engines that are right pass them, a seed is the
# same twice, a failing one is made small, and what is printed runs again.
#
# usage: graph_test.sh FSDP-CTS [INCLUDE-FOLDER]
set -uo pipefail

# shellcheck source=conformance/cli/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/../checks.sh"
cd "$folder" || exit 1

ends() # WHAT CODE TEXT ARGUMENT...: exit code, and TEXT in the output
{
    local what=$1 code=$2 text=$3 why='' got
    shift 3
    timeout 240 "$cts" run --workload graph "$@" >out 2>err
    got=$?
    if [ "$got" -ne "$code" ]; then
        why="exit code $got, not $code: $(tail -n 1 out) $(cat err)"
    elif ! grep -qF -- "$text" out; then
        why="'$text' is not in the output"
    fi
    result "$what" "$why"
}

for engine in ref impl; do
    ends "60 seeds, $engine" 0 "$engine, " \
        --engine $engine --seeds 60 --partial-ok
done
ends 'none of them is of the manifest' 2 "4 cases that are not the manifest's" \
    --strict --engine ref --seeds 4 --first-seed 1000
ends 'other seeds' 0 'ref, ' --engine ref --seeds 20 --first-seed 5000 \
    --partial-ok

# What is recorded of a seed does not depend on the others.
"$cts" run --engine ref --workload graph --seeds 6 --first-seed 7 \
    --records many --record-only --quiet >out 2>err
"$cts" run --engine ref --workload graph --seeds 1 --first-seed 10 \
    --records one --record-only --quiet >out 2>err
case=$(find one -maxdepth 1 -name 'graph.*' -printf '%f\n')
why=''
for file in one/"$case"/*.safetensors one/baseline/*/*.safetensors; do
    cmp -s "$file" "many${file#one}" || why="$file differs"
done
[ -n "$case" ] || why='no record'
result 'a seed by itself' "$why"
ends 'by its id' 0 'ref, 1 of 1 cases judged' --engine ref --case "$case" \
    --partial-ok
unlisted=linear.tiny.exact16.no-shard.k2.per-parameter.layer.rank.s.sgd.fp16.div4
"$cts" run --engine ref --partial-ok --case "$unlisted" >out 2>err
result 'a case that no list has, by its id' \
    "$(grep -qF '1 of 1 cases judged' out || cat out err)"

# The unit before the next one has no elements, and still its turn.
id=graph.random.natural.hybrid-shard.k4r2.per-parameter.drawn
ends 'running ahead of an empty unit' 0 '58 pass, 0 fail' --engine impl \
    --case $id.rank.nns.adamw.keep-root.pf1.rif1.steps3.seed362 --partial-ok

# What bounds and formulas take for granted does not hold here: a unit that is
# open around another one when it evaluates; a module that is called twice and
# has no backward pass, which is four points, too.
ends 'units that overlap in an evaluation' 0 ' 0 fail' --engine ref --case \
    graph.xff7ffffffcfffa.natural.full-shard.k2.flat.drawn.rank.s.sgd.eval.steps1.seed103500
ends 'two forward passes are no backward pass' 0 ' 0 fail' --engine ref --case \
    graph.xf1fffffffcfff9.natural.full-shard.k2.flat.drawn.rank.s.sgd.steps1.seed106314

# A fault that only a module that is used twice shows: three modules are left,
# one of them called twice.
ends 'a fault is made small' 1 'The smallest case found' \
    --engine ref --mutant reuse-forgotten --seeds 30
modules=$(sed -n 's/^  \([0-9]*\) modules in .*/\1/p' out)
result 'few modules' "$([ "${modules:-99}" -le 3 ] || echo "$modules modules")"
result 'one rank, one step' \
    "$(grep -qF ', 1 ranks (1 x 1), fold rank, sgd, microbatches s, 1 steps' \
        out || grep 'ranks (' out)"
rerun=$(sed -n 's/^  rerun  //p' out | tail -n 1)
case "$rerun" in
'fsdp-cts run --engine ref --mutant reuse-forgotten --case graph.x'*)
    # shellcheck disable=SC2086 # words of a command
    "$cts" ${rerun#fsdp-cts } >out 2>err
    got=$?
    result 'what is printed runs again' "$([ "$got" -eq 1 ] || echo "$got")"
    ;;
*)
    result 'what is printed runs again' "no command: $rerun"
    ;;
esac

finish 9

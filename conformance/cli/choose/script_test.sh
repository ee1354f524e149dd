#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# script_test.sh - scripts that are given as text: played, recorded, judged
# again from the records by another process, and shown wrong where an engine
# is; and refused, with the action's number, where they are not legal.
#
# usage: script_test.sh FSDP-CTS [INCLUDE-FOLDER]
set -uo pipefail

# shellcheck source=conformance/cli/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/../checks.sh"

# run NAME SCRIPT [OPTION ...]: its exit code goes to $code, its words to
# $folder/NAME and $folder/NAME.err.
code=0
run()
{
    local name=$1 script=$2
    shift 2
    code=0
    (cd "$folder" && "$cts" run --script "$script" "$@") \
        >"$folder/$name" 2>"$folder/$name.err" || code=$?
}

long='script 1
groups 3
betas 0.75 0.9375
--
! point-before-begin
pass 0.0 n at 1 sync on     # counts from the next pass on
eval 5.0
pass 0.1
clip 0.25 p 2
look
step lr 0.05,0.025,0.1 decay 0.01
step lr 0.05
zero
save a sharded; wait a
pass 1.0 s until 3/8
! param-after-cancel
pass 1.1 n
load a
summon
repeat 2 {
pass i+1.0 s
step lr 0.01
}
look
again
load a
pass 2.3 s
look
pass 3.0 left-open 1/2'

run all "$long" --engine ref,impl --partial-ok --quiet --records kept
why=''
[ "$code" -eq 0 ] || why="code $code: $(cat "$folder/all.err")"
[ "$(grep -c ' PASSED, of a selection' "$folder/all")" -eq 2 ] ||
    why="$(tail -3 "$folder/all")"
result "a long script passes with both engines" "$why"

printf '%s\n' "$long" >"$folder/file"
why=''
(cd "$folder" && "$cts" verify kept --script file --partial-ok) \
    >"$folder/again" 2>&1 || why="$(tail -3 "$folder/again")"
grep -q '^script.values .* 1 ' "$folder/again" || why="nothing was judged"
result "verify judges it again, from a file" "$why"

# The rerun line is one line, and runs again.
run wrong "$long" --engine ref --mutant gather-twice
rerun=$(sed -n 's/^  rerun  fsdp-cts run/run/p' "$folder/wrong" | head -n 1)
eval "\"$cts\" $rerun" >"$folder/again" 2>&1
result "what failed is run again by its rerun line" "$(
    [ "$rerun" != "" ] || echo 'there is none'
    cmp <(grep -m1 '^fail' "$folder/wrong") <(grep -m1 '^fail' "$folder/again") 2>&1
)"

listed=$("$cts" list scripts --script "$folder/file" 2>&1)
why=''
[ "$("$cts" list scripts --script "$listed" 2>&1)" = "$listed" ] ||
    why="$listed"
result "what is listed is a script, and the same one" "$why"

# right NAME SCRIPT [OPTION ...]: both engines pass it.
right()
{
    local what=$1 script=$2
    shift 2
    run right "$script" --engine ref,impl --partial-ok --quiet "$@"
    why=''
    [ "$code" -eq 0 ] || why="code $code: $(tail -2 "$folder/right")"
    [ "$(grep -c ' PASSED, of a selection' "$folder/right")" -eq 2 ] ||
        why="$(tail -2 "$folder/right")"
    result "$what passes with both engines" "$why"
}
right "a save for which one rank gathers" \
    'script 1;--;zero; save a full-rank0; wait a'
right "dtypes that are not claimed" \
    'script 1;--;! unclaimed-dtype;! unclaimed-param-f16
! unclaimed-reduce-bf16;! unclaimed-reduce-f16;! unclaimed-param-of-unit
! unclaimed-reduce-of-unit;! unknown-param-dtype;! unknown-reduce-dtype;zero'
right "a checkpoint that is damaged, beside an earlier one" \
    'script 1;--;save a local;wait a;pass 0.0 s;pass 0.1 s;zero;save a sharded
wait a;! load-damaged;look'
run ahead 'script 1;--;! shard-units;look' --engine impl --partial-ok --quiet \
    --case mlp.empty.natural.full-shard.k4.flat.layer.rank.s.sgd.pb2
result "ranks disagree about units of which all are reached ahead" "$(
    [ "$code" -eq 0 ] || echo "code $code: $(tail -2 "$folder/ahead")"
)"
# What is looked for must be proved by a record in which it is spoiled: where
# there are gradients, and in a unit that has any.
right "a scaled step that finds no gradients" \
    'script 1;scale 2^4;--;look;step lr 0.1;look;pass 0.0 s;clip 0.5 p 2;look' \
    --case mlp.odd.natural.full-shard.k3.flat.layer.rank.s.sgd
right "a scaled step behind one that was skipped, and a unit without gradients" \
    'script 1;scale 2^4 every 1;--;pass 0.0 s inf
look;step lr 0.1;look;zero;pass 0.1 s;look;step lr 0.1;look' \
    --case graph.random.natural.no-shard.k3.flat.drawn.rank.ss.adamw.seed39
right "a pass that is cancelled while it runs ahead" \
    'script 1;--;pass 0.0 s until 3/8;pass 0.0 s until 6/8;pass 0.1 s
look;step lr 0.1' \
    --case mlp.odd.natural.full-shard.k3.flat.layer.rank.s.sgd.pf1.pb1.rif1

# Gradients that were made for it have norms that are known: 1 and the next
# number above (1 + 2^-24 + 2^-80), 2^-140, infinity, 2^-140 again, NaN.
run edits 'script 1
case mlp.seed.natural.full-shard.k2.flat.layer.rank.s.sgd.div1
--
pass 0.0 s set zero set tie rank 0 param 0; clip inf p 1; zero
pass 0.0 s set zero set subnormal rank 1 param 2 element 3; clip inf p inf; zero
pass 0.0 s set zero inf rank 3 param 1; clip inf p 2; zero
pass 0.0 s set zero set tie rank 0 param 0 times 2^-140 param 0
clip inf p inf; zero
pass 0.0 s nan param 1; clip inf p inf; step lr 0.1; look' \
    --engine ref --partial-ok --records edited
why=''
[ "$code" -eq 0 ] || why="code $code: $(tail -3 "$folder/edits.err")"
norms=$(grep -ho '"norm-action-[^]]*' "$folder"/edited/mlp*/rank-1.json |
    sed 's/.*, //' | tr '\n' ' ')
[[ $norms == '1065353217 512 2139095040 512 2143289344 ' ]] || why="$norms"
result "gradients become what a script makes of them" "$why"

right "gradients of 16 bits are edited in theirs" 'script 1;--
pass 0.0 s set zero set tie rank 0 param 0;clip inf p inf;step lr 0.1
zero;pass 1.0 s set zero set subnormal rank 1 param 2 element 3;clip inf p 2
look' --case mlp.odd.natural.full-shard.k2.flat.layer.rank.s.sgd.bf16

# Each engine is wrong in a way that this script shows, and that is its cause.
wrong() # MUTANT REQUIREMENT SCRIPT [ENGINE CASE]
{
    run wrong "$3" --engine "${4:-ref}" --mutant "$1" --partial-ok \
        ${5:+--case "$5"}
    why=''
    [ "$code" -eq 1 ] || why="code $code"
    grep -q "$2" "$folder/wrong" || why="$(tail -2 "$folder/wrong")"
    grep -q "rerun .* --script '.*' .*--case .*text-" "$folder/wrong" ||
        why="no rerun"
    result "$1 dies" "$why"
}
wrong eval-drops-pending 'script.values' \
    'script 1;--;pass 0.0 n;eval 1.0;pass 0.1 s;look'
wrong first-rate-for-ever 'script.losses' \
    'script 1;--;pass 0.0 s;step lr 0.1;step lr 0.01;zero;pass 1.0 s'
wrong betas-hard-coded 'script.values' \
    'script 1
case mlp.odd.natural.full-shard.k2.flat.layer.rank.s.adamw
betas 0.5 0.5
--
repeat 2 { ; pass i.0 s; step lr 0.1; }; look'

ahead=mlp.odd.natural.full-shard.k3.flat.layer.rank.s.sgd.pf1.pb1
wrong gather-as-integers 'script.collectives' \
    'script 1;--;pass 0.0 s until 5/8;zero' impl "$ahead"
wrong cancel-gathers-ahead 'script.collectives' \
    'script 1;--;pass 0.0 s until 5/8;zero' impl "$ahead"

# An engine that claims what is offered to it may take it; another one may not.
# The reference claims it: records of one that does not are made of its own.
offer='script 1;--;! unclaimed-dtype;zero'
run offer "$offer" --engine ref --partial-ok --quiet --records offered
for record in "$folder"/offered/mlp*; do
    sed -i 's/\["unclaimed-dtype", -[0-9]*\]/["unclaimed-dtype", 0]/' \
        "$record"/rank-*.json
    sed -i 's/"bf16", //' "$record"/case.json
done
why=''
(cd "$folder" && "$cts" verify offered --script "$offer" --partial-ok) \
    >"$folder/offer" 2>&1 && why="it passed"
grep -q 'script.answers' "$folder/offer" || why="$(tail -2 "$folder/offer")"
result "a dtype is taken that is not claimed" "$why"
sed -i 's/"claims": \[/&"bf16", /' "$folder"/offered/mlp*/case.json
why=''
(cd "$folder" && "$cts" verify offered --script "$offer" --partial-ok) \
    >"$folder/offer" 2>&1 || why="$(tail -2 "$folder/offer")"
result "and may be, if it is" "$why"

# A save of states alone, rounded, in the folder of a whole one before it.
behind='script 1;--;save d sharded;wait d;save d full of states extra in fp16;'
behind+='wait d'
run behind "$behind" --engine ref,impl --partial-ok --quiet
why=''
[ "$code" -eq 0 ] || why="code $code: $(tail -2 "$folder/behind")"
result "parameters of a save before say nothing of a rounded one" "$why"

# Where the unsharded run's norm is NaN, a NaN is right and a number is not.
nan='script 1;--;pass 0.0 s;step lr 1e38;zero;pass 1.0 s;clip 1 p 2'
run nan "$nan" --engine ref --partial-ok --requirement script.norms \
    --records nans
why=''
[ "$code" -eq 0 ] || why="code $code: $(tail -2 "$folder/nan")"
result "a norm that is NaN passes" "$why"
sed -i 's/\["norm-action-5", [0-9-]*\]/["norm-action-5", 0]/' \
    "$folder"/nans/mlp*/rank-1.json
why=''
(cd "$folder" && "$cts" verify nans --script "$nan" --partial-ok \
    --requirement script.norms) >"$folder/nan" 2>&1 && why="it passed"
grep -q 'the norm differs in bits' "$folder/nan" ||
    why="$(tail -2 "$folder/nan")"
result "a number in its place does not" "$why"

refused() # WHAT WORDS SCRIPT [OPTION ...]
{
    local what=$1 words=$2 script=$3
    shift 3
    run refused "$script" "$@"
    why=''
    [ "$code" -eq 64 ] || why="code $code"
    grep -q -- "$words" "$folder/refused.err" ||
        why="$(cat "$folder/refused.err")"
    [ "$(wc -l <"$folder/refused.err")" -eq 1 ] || why="more than a line"
    result "refused: $what" "$why"
}
refused "a step with gradients pending" 'action 2 (step lr 0.1): .*pending' \
    'script 1;--;pass 0.0 n;step lr 0.1'
refused "a save that nobody waits for" 'waited for' \
    'script 1;--;save a sharded'
refused "a call that would be right" 'action 2 .*nothing says' \
    'script 1;--;pass 0.0 s;! step-with-pending'
refused "a place beyond the pass" 'action 1 .*not as long' \
    'script 1;--;pass 0.0 s until 1000'
refused "an unknown word" "action 2: 'pas'" 'script 1;--;zero;pas 0.0'
refused "another version" 'only version 1' 'script 2;--;zero'
refused "nothing to play" 'an action at least' 'script 1;--;'
refused "too much to play" '1 to 100000 actions' \
    'script 1;--;repeat 100001 {; zero; }'
printf 'script 1\n--\nzero\npas 0.0\n' >"$folder/wrong.txt"
refused "an unknown word in a file, by its name" \
    "script $folder/wrong.txt: line 4, action 2: 'pas'" "$folder/wrong.txt"
refused "no such file" 'No such file' nothing-there
refused "two cases" 'one case' 'script 1;--;zero' --case a,b
refused "a case with a scenario" 'id of a case that trains' \
    'script 1;--;zero' --case \
    mlp.odd.natural.full-shard.k3.flat.layer.rank.s.sgd.rates
refused "ranks of a case that is named" 'the case is given' \
    'script 1;--;zero' --ranks 2 --case \
    mlp.odd.natural.full-shard.k3.flat.layer.rank.s.sgd.rates
refused "a microbatch that the case lacks" 'fewer microbatches' \
    'script 1;--;pass 0.3 s' --case \
    mlp.odd.natural.full-shard.k3.flat.layer.rank.s.sgd
refused "what is not played" 'action 1 (anew): .*not played' \
    'script 1;--;anew'

finish 37

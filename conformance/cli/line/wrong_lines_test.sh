#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# wrong_lines_test.sh - what people type wrong: each line is answered at once
# with one line that names what is wrong, or what was meant, and its exit code;
# and what only looks wrong is taken. (What is wrong in files is
# bad_input_test.sh's.)
#
# usage: wrong_lines_test.sh FSDP-CTS [INCLUDE-FOLDER]
set -uo pipefail

# shellcheck source=conformance/cli/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/../checks.sh"
cd "$folder" || exit 1
mkdir empty
echo text >text.so
n=0

# Exit code | in the line on standard error | what was typed
while IFS='|' read -r code text line; do
    code=${code// /}
    text=$(sed 's/^ *//; s/ *$//' <<<"$text")
    n=$((n + 1))
    eval "set -- $line"
    timeout 60 "$cts" "$@" >out 2>err </dev/null
    got=$?
    why=''
    if [ "$got" != "$code" ]; then
        why="exit code $got, not $code: $(head -c 200 err)"
    elif [ "$(wc -l <err)" != 1 ] || [ -s out ]; then
        why="not one line: $(cat out err | head -c 300)"
    elif ! grep -qF -- "$text" err; then
        why="no '$text' in: $(cat err)"
    fi
    result "$line" "$why"
done <<'END'
64 | a value of the list is empty      | run --ranks 2,,3
64 | '2' is there twice                | run --ranks 2,2,2
64 | a value of the list is empty      | run --ranks ''
64 | a value of the list is empty      | run --ranks ,
64 | numbers from 1 to 512             | run --ranks 0
64 | numbers from 1 to 512             | run --ranks -1
64 | numbers from 1 to 512             | run --ranks 1.5
64 | numbers from 1 to 512             | run --ranks 99999999999999
64 | numbers from 1 to 512             | run --ranks abc
64 | '--ranks' needs a value           | run --ranks
64 | 'ref' is there twice              | run --engine ref --engine ref
64 | unknown engine 'nope'             | bench steps --engine nope
64 | engine nosuch.so: cannot open     | run --engine nosuch.so
64 | engine ./nosuch.so: No such file  | run --engine ./nosuch.so
64 | unknown engine 'nosuch'           | run --engine nosuch
64 | engine text.so: file too short    | run --engine text.so
64 | unknown engine 'empty'            | run --engine empty
64 | engine ./empty: cannot read       | run --engine ./empty
64 | did you mean 'gpt'?               | run --workload gtp
64 | did you mean 'divide-twice'?      | run --mutant divide_twice
64 | did you mean 'memory.peak-bound'? | run --requirement memory.peak
64 | did you mean 'mlp.seed.natural    | run --case mlp.seed.natural.full-shard.k2.flat.layer.rank.s.sgd.steps4
64 | did you mean 'full-shard'?        | run --strategy fullshard
64 | unknown level 'nine': 0 to 8      | run --level nine
64 | unknown world 'moon'              | run --world moon
64 | unknown option '--frobnicate'     | run --frobnicate
64 | did you mean '--record-only'?     | run --record x
64 | there are: run                    | frobnicate
64 | 'mlp' is no option                | run mlp
64 | must be seconds, 1 to 86400       | run --timeout 0
64 | must be seconds, 1 to 86400       | run --timeout huge
64 | must be a number from 1 to 64     | run --jobs -2
64 | must be a number from 1 to 64     | run --jobs 65
64 | is for --workload graph           | run --seeds 3
64 | cannot start ./nompirun           | run --world mpi --launcher ./nompirun --ranks 2 --case mlp.seed.natural.full-shard.k2.flat.layer.rank.s.sgd.steps40
64 | is too short                      | run --text text.so
64 | is about one engine               | run --debug 0
64 | needs 'nosuch'                    | run --wrap nosuch
74 | cannot write /nonexistent/x       | run --report /nonexistent/x
74 | cannot write /nonexistent/x       | run --junit /nonexistent/x
74 | folder /nonexistent/x             | run --records /nonexistent/x
65 | empty has no records              | verify empty
65 | nosuch is not a folder            | verify nosuch
65 | text.so is not a folder           | verify text.so
64 | needs a folder of records         | verify
65 | nosuch: cannot open               | inspect nosuch
65 | too few for the header            | inspect text.so
65 | nosuch: No such file              | report nosuch
65 | line 1: no JSON object            | report text.so
64 | needs one report                  | report
64 | needs a requirement               | explain
64 | did you mean 'memory.peak-bound'? | explain memory.peak-boud
64 | unknown list 'nosuch'             | list nosuch
64 | unknown mutant 'nosuch'           | mutants nosuch
64 | needs a folder of records         | submit
65 | empty/manifest.json               | results empty
65 | nosuch is no file                 | plan nosuch
64 | unknown action nosuch             | track nosuch
65 | nosuch                            | consolidate nosuch out
65 | nosuch: No such file              | probe nosuch x
64 | no language                       | init pascal d
64 | needs one of bash                 | completion tcsh
END
result 'there are sixty' "$([ "$n" -ge 60 ] || echo "$n")"

# ---- What only looks wrong ------------------------------------------------
mkdir 'a,b c'
printf 'int x;\n' >'a,b c/strict.so'
"$cts" run --engine 'a,b c/strict.so' >out 2>err
result 'a comma in a path' "$(grep -qF 'engine a,b c/strict.so: ' err ||
    cat err)"
"$cts" run --engine ref --engine impl --dry-run --case \
    mlp.seed.natural.full-shard.k2.flat.layer.rank.s.sgd.steps40 >out 2>err
result '--engine twice' "$([ $? = 0 ] || cat err)"
"$cts" -V >out 2>err
result '-V' "$(grep -q '^fsdp-cts [0-9]' out || cat out err)"
finish 65

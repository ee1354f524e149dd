#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# rerun_test.sh - what a failure says to type is typed: by run, by verify of the
# records that it kept, in a report and in JUnit's form, each time from another
# folder, it must fail in the same way again.
#
# usage: rerun_test.sh FSDP-CTS INCLUDE-FOLDER
set -uo pipefail

# shellcheck source=conformance/cli/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/../checks.sh"
include=$(realpath "$2")
engine=$include/../../docs/example/first_engine.c
mkdir "$folder/here it is" "$folder/elsewhere"
cd "$folder/here it is" || exit 1
ln -s "$cts" "$folder/fsdp-cts"
PATH=$folder:$PATH

needs "${CC:-cc}"
sed 's/how->lr\[0\], decay/how->lr[0] * (float)s->env->world, decay/' "$engine" >slow.c
"${CC:-cc}" -std=c11 -shared -fPIC -O1 -ffp-contract=off \
    -I "$include" slow.c -o slow.so || exit 1

# again WHAT LINE: it is a command, which fails as the engine does.
again()
{
    result "$1" "$(
        cd "$folder/elsewhere" || exit
        [ -n "$2" ] || echo 'nothing says how to run it again'
        eval "$2" >again 2>&1
        [ $? -eq 1 ] || echo "$2: $(tail -n 2 again)"
        sed -n '/^fail/{p;q;}' again >first
        case $(<first) in
        'fail step.sgd '*) ;;
        *) echo "$2: $(<first)" ;;
        esac
    )"
}

first_rerun() # FILE: of text
{
    sed -n '/^  rerun  /{s///p;q;}' "$1"
}

run=(run --engine "$PWD/slow.so" --workload mlp --ranks 5 --strategy full-shard)
"$cts" "${run[@]}" >out 2>err
again 'what run says' "$(first_rerun out)"

# A relative path; verify, reports and JUnit speak to whoever is elsewhere.
"$cts" run --engine ./slow.so --workload mlp --ranks 5 --strategy full-shard \
    --records kept \
    --record-only >out 2>err
"$cts" verify kept --workload mlp --ranks 5 --strategy full-shard --report kept.jsonl \
    --junit kept.xml >out 2>err
again 'what verify says' "$(first_rerun out)"
"$cts" report kept.jsonl --requirement step.sgd >out 2>err
again 'what report says' "$(first_rerun out)"
again "what JUnit's form says" \
    "$(sed -n "/^rerun: /{s///;s/&#39;/'/g;s/<.*//p;q;}" kept.xml)"

# Each engine's own, and a mutant.
"$cts" run --engine ref,impl --mutant groups-ignored --workload mlp --ranks 2 --strategy no-shard \
    --records both --record-only >out 2>err
"$cts" verify both --workload mlp --ranks 2 --strategy no-shard >out 2>err
result 'two engines are told apart' "$(
    grep -o 'rerun  .*--case' out | sort -u >got
    printf 'rerun  fsdp-cts run --engine %s --mutant groups-ignored --case\n' \
        impl ref >want
    diff got want
)"

# ---- All that failed ----
# "and 20 more cases" are run again from a report: of its engine, from elsewhere.
failing() # of a report, the cases
{
    grep '"outcome": *"\(fail\|error\|timeout\)"' "$1" |
        grep -o '"case": *"[^"]*"' | sort -u
}
"$cts" run --engine "$PWD/slow.so" --workload mlp --ranks 5 --strategy full-shard --report all.jsonl \
    >out 2>err
failing all.jsonl >wanted
(cd "$folder/elsewhere" &&
    "$cts" run --from "$folder/here it is/all.jsonl" --failed \
        --engine "$folder/here it is/slow.so" --report some.jsonl >../out 2>../err)
result '--from REPORT --failed' "$(
    failing "$folder/elsewhere/some.jsonl" | diff - wanted
    [ "$(grep -c '"type": *"case"' all.jsonl)" -gt "$(wc -l <wanted)" ] ||
        echo 'no case passes'
    [ "$(grep -c '"type": *"case"' "$folder/elsewhere/some.jsonl")" = \
        "$(wc -l <wanted)" ] || echo 'it has run others'
)"
"$cts" run --from all.jsonl --failed --engine ./slow.so --dry-run >out 2>err
result '--dry-run prints them' "$(
    sed 's/.*"\(.*\)"/\1/' wanted | diff - <(sort out)
)"
sed 's/how->lr\[0\], decay/how->lr[0] + 0.0f, decay/' "$engine" >slow.c
"${CC:-cc}" -std=c11 -shared -fPIC -O1 -ffp-contract=off \
    -I "$include" slow.c -o slow.so || exit 1
"$cts" run --engine ./slow.so --workload mlp --ranks 5 --strategy full-shard --report all.jsonl \
    --last-failed --quiet >out 2>err
result '--last-failed: what is mended passes' "$(
    [ "$(<out)" = 'PASSED, of a selection: no verdict' ] || cat out err
    [ "$(grep -c '"type": *"case"' all.jsonl)" = "$(wc -l <wanted)" ] ||
        echo 'it has run others'
)"
"$cts" run --from all.jsonl --failed >out 2>err
result 'nothing failed' "$(
    [ $? -eq 64 ] || echo 'another code'
    grep 'all.jsonl: no case failed' err >found || cat err
)"
drawn='"drawn":{"generator":2,"seed":7,"played":200,"failed":2,"incomplete":false,"first":"script.2.7.of"},'
sed '/"type":"footer"/{s/"verdict":"[A-Z]*"/'"$drawn"'"verdict":"NON-CONFORMANT"/
    s/"reason":"[^"]*"/"reason":"2 of 200 drawn scripts fail"/}' \
    all.jsonl >drawn.jsonl
"$cts" run --from drawn.jsonl --failed >out 2>err
result 'only a drawn script failed' "$(
    [ $? -eq 64 ] || echo 'another code'
    grep -q 'no case failed, but a drawn script .* --script script.2.7.of$' err ||
        cat err
)"
sed 's/script.2.7.of/$(script) 1/' drawn.jsonl >strange.jsonl
"$cts" run --from strange.jsonl --failed >out 2>err
result 'an id that is none is not printed' "$(
    [ $? -eq 64 ] || echo 'another code'
    grep -q 'strange.jsonl: no case failed$' err || cat err
)"
"$cts" run --failed >out 2>err
result 'failed of what' "$([ $? -eq 64 ] || cat err)"

# Nothing of a script is left for who claims scripts and no layout.
sed '/static const char \*const claims\[\] = {/,/};/c\
static const char *const claims[] = {"scripts", NULL};' "$engine" >few.c
"${CC:-cc}" -std=c11 -shared -fPIC -O1 -ffp-contract=off \
    -I "$include" few.c -o few.so || exit 1
"$cts" run --engine ./few.so --scripts 3 --seed 1 >out 2>err
result 'scripts of which nothing is left are said' "$(
    [ $? -eq 2 ] || echo 'another code'
    grep -q ' 0 scripts .*; of 3 nothing is left for what it claims$' out ||
        cat out err
)"

"$cts" list scripts --draw 1 --seed 33 | sed '/^#/d' >drawn.txt
"$cts" run --engine ref --script drawn.txt --records of-script --record-only \
    >out 2>err
result 'the file of a script, from anywhere' "$(
    grep -qF "\"script\": \"$PWD/drawn.txt\"" of-script/rerun.json ||
        cat out err of-script/rerun.json
)"

# ---- How ranks were kept ----
"$cts" run --engine ref --mutant groups-ignored --workload mlp --ranks 2 --strategy no-shard \
    --isolate --timeout 40 --records kept-alone --report alone.jsonl >out 2>err
result '--isolate and --timeout' "$(
    # Where the kernel cannot, that was said, and there was none.
    how=' --isolate --timeout 40'
    grep -q 'not isolated' err && how=' --timeout 40'
    case $(first_rerun out) in
    "fsdp-cts run --engine ref$how --mutant groups-ignored --case "*) ;;
    *) first_rerun out ;;
    esac
    "$cts" verify kept-alone --workload mlp --ranks 2 --strategy no-shard \
        >verified 2>&1
    [ "$(first_rerun verified)" = "$(first_rerun out)" ] ||
        first_rerun verified
)"

# ---- Reports of strangers ----
# stranger WHAT COMMAND WORDS: its engine is not started, and the words are said.
stranger()
{
    sed "s|\"rerun\":\"fsdp-cts run .* --case |\"rerun\":\"fsdp-cts run $2 --case |" \
        alone.jsonl >stranger.jsonl
    rm -f touched
    "$cts" run --from stranger.jsonl --failed >out 2>err
    local code=$?
    result "$1" "$(
        [ "$code" -eq 64 ] || echo "exit $code"
        [ ! -e touched ] || echo 'it was started'
        grep -qF -- "$3" err || cat err
        grep -q "\"rerun\":\"fsdp-cts run $2 " stranger.jsonl ||
            echo 'the report does not say it'
    )"
}
stranger 'a command of a report' "--adapter 'touch touched; false'" \
    "give --adapter 'touch touched; false'"
cat >touch.c <<'END'
#include <stdio.h>
__attribute__((constructor)) static void touch(void)
{
    (void)!fopen("touched", "w");
}
END
"${CC:-cc}" -shared -fPIC touch.c -o touch.so || exit 1
stranger 'a library of a report' '--engine ./touch.so' \
    "give --engine './touch.so'"

# ---- Records of strangers ----
# The file says what is run by whoever pastes the line: options of a run, each
# with one word, whatever is in it; else it says nothing.
strange() # WHAT JSON WANTED
{
    printf '%s' "$2" >kept/rerun.json
    "$cts" verify kept --workload mlp --ranks 5 --strategy full-shard >out 2>err
    result "$1" "$(
        got=$(first_rerun out)
        case $got in
        "$3 --case "*) ;;
        *) echo "says: $got" ;;
        esac
    )"
}
# shellcheck disable=SC2016  # nothing is to be expanded
strange 'a value is one word' '{"version": 1, "engine": "a; touch b'\''$(c)"}' \
    "fsdp-cts run --engine 'a; touch b'\\''\$(c)'"
strange 'other options are none' \
    '{"version": 1, "engine": "ref", "records": "/etc; rm"}' \
    'fsdp-cts run --engine ref'
strange 'what is no text' '{"version": 1, "engine": ["ref"]}' 'fsdp-cts run'
strange 'another version' '{"version": 2, "engine": "ref"}' 'fsdp-cts run'
strange 'no JSON' 'engine=ref' 'fsdp-cts run'

finish 22

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
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"
include=$(realpath "$2")
engine=$include/../../docs/example/first_engine.c
mkdir "$folder/here it is" "$folder/elsewhere"
cd "$folder/here it is" || exit 1
ln -s "$cts" "$folder/fsdp-cts"
PATH=$folder:$PATH

if ! command -v "${CC:-cc}" >/dev/null; then
    echo 'no C compiler'
    exit 77
fi
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

run=(run --engine "$PWD/slow.so" --workload mlp --ranks 5)
"$cts" "${run[@]}" >out 2>err
again 'what run says' "$(first_rerun out)"

# A relative path; verify, reports and JUnit speak to whoever is elsewhere.
"$cts" run --engine ./slow.so --workload mlp --ranks 5 --records kept \
    --record-only >out 2>err
"$cts" verify kept --workload mlp --ranks 5 --report kept.jsonl \
    --junit kept.xml >out 2>err
again 'what verify says' "$(first_rerun out)"
"$cts" report kept.jsonl --requirement step.sgd >out 2>err
again 'what report says' "$(first_rerun out)"
again "what JUnit's form says" \
    "$(sed -n "/^rerun: /{s///;s/&#39;/'/g;s/<.*//p;q;}" kept.xml)"

# Each engine's own, and a mutant.
"$cts" run --engine ref,impl --mutant groups-ignored --workload mlp --ranks 2 \
    --records both --record-only >out 2>err
"$cts" verify both --workload mlp --ranks 2 >out 2>err
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
"$cts" run --engine "$PWD/slow.so" --workload mlp --ranks 5 --report all.jsonl \
    >out 2>err
failing all.jsonl >wanted
(cd "$folder/elsewhere" &&
    "$cts" run --from "$folder/here it is/all.jsonl" --failed \
        --report some.jsonl >../out 2>../err)
result '--from REPORT --failed' "$(
    failing "$folder/elsewhere/some.jsonl" | diff - wanted
    [ "$(grep -c '"type": *"case"' all.jsonl)" -gt "$(wc -l <wanted)" ] ||
        echo 'no case passes'
    [ "$(grep -c '"type": *"case"' "$folder/elsewhere/some.jsonl")" = \
        "$(wc -l <wanted)" ] || echo 'it has run others'
)"
"$cts" run --from all.jsonl --failed --dry-run >out 2>err
result '--dry-run prints them' "$(
    sed 's/.*"\(.*\)"/\1/' wanted | diff - <(sort out)
)"
sed 's/how->lr\[0\], decay/how->lr[0] + 0.0f, decay/' "$engine" >slow.c
"${CC:-cc}" -std=c11 -shared -fPIC -O1 -ffp-contract=off \
    -I "$include" slow.c -o slow.so || exit 1
"$cts" run --engine ./slow.so --workload mlp --ranks 5 --report all.jsonl \
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
"$cts" run --failed >out 2>err
result 'failed of what' "$([ $? -eq 64 ] || cat err)"

# ---- Records of strangers ----
# The file says what is run by whoever pastes the line: options of a run, each
# with one word, whatever is in it; else it says nothing.
strange() # WHAT JSON WANTED
{
    printf '%s' "$2" >kept/rerun.json
    "$cts" verify kept --workload mlp --ranks 5 >out 2>err
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

finish 15

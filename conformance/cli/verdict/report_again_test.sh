#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# report_again_test.sh - `fsdp-cts report` says what `run` and `verify` said,
# in whole and of a requirement, and takes no report that was cut or edited.
#
# usage: report_again_test.sh FSDP-CTS
set -uo pipefail

# shellcheck source=conformance/cli/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/../checks.sh"
cd "$folder" || exit 1
cases=(--workload mlp --ranks 2 --strategy 'full-shard' --cover)

same() # WHAT FILE FILE
{
    result "$1" "$(diff "$2" "$3" | sed -n 1,4p)"
}

# What people read, of an engine that is right and of one that is not. The
# last line but one is --quiet's, and names of files are what may differ.
for mutant in '' divide-twice; do
    name=${mutant:-right}
    "$cts" run --engine ref ${mutant:+--mutant $mutant} "${cases[@]}" \
        --records "$name" --record-only --quiet >out 2>&1
    "$cts" verify "$name" "${cases[@]}" --report "$name.jsonl" \
        --junit "$name.xml" >verified 2>err
    code=$?
    "$cts" report "$name.jsonl" --junit again.xml >shown 2>err
    again=$?
    # Of the records that verify has, it shows a miniature.
    sed -i '/^The miniature/,$d; /^$/d' verified
    sed -i '/^$/d' shown
    same "$name: the text" verified shown
    same "$name: JUnit's form" "$name.xml" again.xml
    result "$name: exit code" "$([ $code = $again ] || echo "$again, not $code")"
    for requirement in comm.order reduce.scale num.curve \
        prefetch.forward-ahead; do
        "$cts" verify "$name" "${cases[@]}" --requirement $requirement \
            --partial-ok --report one.jsonl >verified 2>err
        code=$?
        "$cts" report "$name.jsonl" --requirement $requirement --partial-ok \
            >shown 2>err
        again=$?
        sed -i '/^The miniature/,$d; /^$/d; s/one.jsonl/REPORT/' verified
        sed -i "/^\$/d; s/$name.jsonl/REPORT/" shown
        same "$name: the text of $requirement" verified shown
        result "$name: exit code of $requirement" \
            "$([ $code = $again ] || echo "$again, not $code")"
        "$cts" report one.jsonl --requirement $requirement >shown 2>err
        sed -i '/^$/d; s/one.jsonl/REPORT/' shown
        same "$name: a report of $requirement alone" verified shown
    done
    "$cts" verify "$name" "${cases[@]}" --report-only --report only.jsonl \
        >out 2>&1
    result "$name: --report-only ends with 0" "$([ $? = 0 ] || cat out)"
done
cp right.jsonl two.jsonl
cat divide-twice.jsonl >>two.jsonl
"$cts" report two.jsonl --partial-ok >out 2>err
code=$?
result 'two engines in one file' "$([ $code = 1 ] &&
    [ "$(grep -c '^ref .*mutant\|^ref ' out)" -ge 2 ] ||
    echo "exit $code: $(tail -n 2 out)")"
"$cts" report /dev/stdin --partial-ok --quiet <right.jsonl >out 2>err
result 'from a pipe' "$([ $? = 0 ] || cat err)"

# Items that passed are read as the suite writes them, or else as JSON.
for name in right divide-twice; do
    "$cts" report "$name.jsonl" --verbose >shown 2>err
    for form in 's/,"case"/, "case"/' 's/"level":"s/"level":"\\u0073/' \
        's/"type":"item",\(.*\)}$/\1,"type":"item"}/; s/^"/{"/'; do
        sed "$form" "$name.jsonl" >form.jsonl
        cmp -s "$name.jsonl" form.jsonl && echo 'nothing was edited' >>shown
        "$cts" report form.jsonl --verbose 2>err |
            sed "s/form.jsonl/$name.jsonl/" >other
        same "$name: $form" shown other
    done
done

refused() # WHAT PATTERN: edited.jsonl
{
    timeout 20 "$cts" report edited.jsonl >out 2>err
    local code=$?
    result "$1" "$([ $code = 65 ] && grep -q -- "$2" err ||
        echo "exit $code, not 65 with '$2': $(cat err)")"
}

edit() # WHAT PATTERN EXPRESSION: sed's, one that must find something
{
    sed "$3" divide-twice.jsonl >edited.jsonl
    cmp -s divide-twice.jsonl edited.jsonl && result "$1" 'nothing was edited'
    refused "$1" "$2"
}

edit 'a failure made a pass' 'are said to be' \
    's/"outcome":"fail"/"outcome":"pass"/'
edit 'the verdict alone' 'the verdict is CONFORMANT' \
    's/"verdict":"NON-CONFORMANT"/"verdict":"CONFORMANT"/'
edit 'a total alone' 'are said to be' 's/"totals":{"pass":/"totals":{"pass":1/'
edit 'a total that is too small' 'are said to be' \
    's/"totals":{"pass":[0-9]*/"totals":{"pass":1/'
edit 'failures left out' 'are said to be' '/"outcome":"fail"/d'
edit 'a failure without its finding' 'without its finding' \
    's/"finding":/"founding":/'
edit 'an unknown requirement' 'no requirement that this program knows' \
    's/"requirement":"comm.order"/"requirement":"comm.odour"/'
edit 'less than a requirement' 'no requirement that this program knows' \
    's/"requirement":"comm.order"/"requirement":"comm.orde"/'
edit 'more than a case' "another case" '/"type":"item"/s/"case":"mlp[^"]*/&x/'
edit 'less than a case' "another case" \
    '/"type":"item"/s/\("case":"mlp[^"]*\)[^"]"/\1"/'
edit 'more than an item' 'JSON' 's/"outcome":"pass"}/&}/'
edit 'less than an item' 'JSON' 's/"outcome":"pass"}/"outcome":"pass"/'
edit 'an escape that is none' 'JSON' '/"pass"}$/s/"level":"s/&\\q/'
edit 'a byte of control' 'JSON' '/"pass"}$/s/"level":"s/&\x01/'
edit 'bytes that are no text' 'JSON' '/"pass"}$/s/"level":"s/&\xff/'
edit 'neither true nor false' 'JSON' 's/"must":true/"must":tru/'
edit 'an unknown outcome' 'no outcome' 's/"outcome":"fail"/"outcome":"fine"/'
edit 'blocked by nothing' 'no requirement' 's/,"blocked_by":"[^"]*"//'
edit 'an item of another case' "another case" \
    '/"type":"item"/s/"case":"mlp.odd[^"]*"/"case":"x"/'
edit 'a case that is none' 'no id of a case' \
    's/"case":"\(mlp[^"]*\)\.k2\./"case":"\1.k2.k2./g'
edit 'a twin' 'a second item' '/"requirement":"comm.order"/p'
edit 'another version' 'version 9' 's/"report":2/"report":9/'
edit 'a header in the middle' 'may be here' '5s/^/{"type":"header"}\n/'
edit 'items alone' 'may be here' '/"outcome":"pass"}/!d'
edit 'one that was not asked' 'not asked' \
    '1s/"engine_version"/"requirements":["comm.order"],&/
    /"outcome":"\(fail\|blocked\|not-claimed\)"/{/"type":"item"/d}'
edit 'bits that are none' '0x and 8 digits' 's/"got":"0x/"got":"0X/'
edit 'an index below 0' 'step' 's/"step":[0-9]*/"step":-1/'
edit 'a note of a page' 'note' "s/\"note\":\"/&$(printf '%01000d' 0)/"
edit 'a field twice' 'JSON' 's/"type":"case"/"type":"case","type":"case"/'
for bytes in 0 1 100 5000 $(($(stat -c %s divide-twice.jsonl) - 2)); do
    head -c "$bytes" divide-twice.jsonl >edited.jsonl
    refused "cut at $bytes" 'footer\|JSON'
done
tac divide-twice.jsonl >edited.jsonl
refused 'backwards' 'may be here'
"$cts" list cases >edited.jsonl
refused 'another file' 'JSON'
"$cts" report right.jsonl >shown
"$cts" report right.jsonl --verbose >all
result '--verbose lists more' "$([ "$(wc -l <all)" -gt "$(wc -l <shown)" ] ||
    echo "$(wc -l <shown) lines and $(wc -l <all)")"
for bad in nowhere.jsonl .; do
    timeout 20 "$cts" report "$bad" >out 2>err
    result "$bad" "$([ $? = 65 ] || cat err)"
done
for usage in '' 'right.jsonl two.jsonl' 'right.jsonl --report x' \
    'right.jsonl --requirement no.such'; do
    # shellcheck disable=SC2086
    timeout 20 "$cts" report $usage >out 2>err
    result "usage: report $usage" "$([ $? = 64 ] && [ -s err ] || cat err)"
done
"$cts" verify right --report-only >out 2>err
result '--report-only without a report' "$([ $? = 64 ] || cat err)"

finish 83

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# engines_test.sh - several engines in one run: each has its verdict, records
# and part of the reports; the exit code is the worst; verify finds them all.
#
# usage: engines_test.sh FSDP-CTS [INCLUDE-FOLDER]
set -uo pipefail

# shellcheck source=conformance/cli/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/../checks.sh"
cd "$folder" || exit 1
case=mlp.seed.natural.full-shard.k2.flat.layer.rank.s.sgd.steps40

ends() # WHAT CODE ARGUMENT...
{
    local what=$1 code=$2 got
    shift 2
    timeout 120 "$cts" "$@" >out 2>err
    got=$?
    result "$what" "$([ "$got" -eq "$code" ] ||
        echo "exit code $got, not $code: $(cat err)")"
}

has() # WHAT FILE TEXT TIMES
{
    local n
    n=$(grep -cF -- "$3" "$2")
    result "$1" "$([ "$n" -eq "$4" ] || echo "'$3': $n times, not $4")"
}

ends 'both by default' 0 run --case "$case" --partial-ok --records both \
    --report both.jsonl --junit both.xml
has 'a verdict each' out ' cases judged, 0 not claimed' 2
has 'a line of the summary: ref' out 'ref                    1/1' 1
has 'a line of the summary: impl' out 'impl                   1/1' 1
has 'a header each' both.jsonl '"type":"header"' 2
has 'a footer each' both.jsonl '"type":"footer"' 2
has 'a header of impl' both.jsonl '"engine":"impl"' 1
has 'both in JUnit' both.xml '<testsuites name="ref, impl"' 1
has 'a suite of ref' both.xml '<testsuite name="ref num.curve"' 1
has 'a suite of impl' both.xml '<testsuite name="impl num.curve"' 1
for path in "both/ref/$case/case.json" "both/impl/$case/case.json" \
    both/baseline; do
    result "there is $path" "$([ -e "$path" ] || echo 'no')"
done

ends 'verify of both' 0 verify both --case "$case" --partial-ok \
    --report again.jsonl
has 'verify: a verdict each' out ' cases judged, 0 not claimed' 2
has 'verify: a header each' again.jsonl '"type":"header"' 2
ends 'verify, quietly' 0 verify both --case "$case" --partial-ok --quiet
result 'verify, quietly: names' "$(printf '%s PASSED, of a selection: no verdict\n' impl ref |
    diff - out)"
# ref runs nothing ahead and does not claim it; impl does. With what nobody
# claims no unsharded run is compared.
ahead=$("$cts" list cases | grep -m 1 '^mlp\..*\.pf[0-9]')
ends 'what the engine does not claim' 77 run --engine ref --case "$ahead" \
    --records unclaimed
result 'no unsharded run of it' "$(find unclaimed/baseline -type f)"
ends 'records that are kept' 0 run --engine ref --case "$ahead" \
    --records kept --record-only
result 'the unsharded run of them' \
    "$([ -n "$(find kept/baseline -name case.json)" ] || echo none)"
ends 'what one of two claims' 77 run --case "$ahead" --records claimed
result 'an unsharded run of it' \
    "$([ -n "$(find claimed/baseline -name case.json)" ] || echo none)"
ends 'verify of what nobody claims' 77 verify unclaimed --case "$ahead"
ends 'one engine over the records of two' 64 run --engine ref --case "$case" \
    --records both

# What one of them does decides, whichever it is.
file=both/impl/$case/rank-1.json
mv "$file" file
ends 'the worst decides' 1 verify both --case "$case" --partial-ok
mv file "$file"
truncate -s 60 "$file"
ends 'what cannot be read' 65 verify both --case "$case" --partial-ok
rm -r "both/ref/$case"
ends 'one without records' 65 verify both --case "$case" --partial-ok

ends 'one engine has the folder for itself' 0 run --engine impl \
    --case "$case" --partial-ok --records one --junit one.xml
result 'its records' "$([ -e "one/$case/case.json" ] || echo 'not there')"
has 'its suites' one.xml '<testsuite name="num.curve"' 1
ends 'an engine that is unknown' 64 run --engine ref,nosuch --case "$case"

finish 21

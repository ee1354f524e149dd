#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# hostile_test.sh - one run in which every second case of each worker is played
# by an engine that does something it should not (hostile_ways_testing.c), and
# the others as they should be: the run ends, what was right is right, and
# nothing is left. Prints what became of each way.
#
# usage: hostile_test.sh FSDP-CTS [INCLUDE-FOLDER]
set -uo pipefail

# shellcheck source=conformance/cli/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/../checks.sh"
engine=$(realpath "$(dirname "$cts")/../tests/hostile.so")
[ -f "$engine" ] || skip "there is no $engine"
workers=4
ways=$(sed -n 's/^    {"\([^"]*\)",.*/\1/p' \
    "$(dirname "${BASH_SOURCE[0]}")/hostile_ways_testing.c")


# What is out of reach in a namespace alone: where the kernel allows none, these
# end the run, change other cases' records, and leave memory.
one=$("$cts" list cases | grep -m 1 '^mlp.*k2')
FSDP_HOSTILE=tell "$cts" run --engine "$engine" --case "$one" --partial-ok \
    >/dev/null 2>"$folder/err"
grep -q 'rank 1] parent 1$' "$folder/err" || {
    echo 'no namespaces here: some ways are left out'
    ways=$(grep -Ev '(remove|empty)-(records|engines)|unmount|shared-memory|-run$' \
        <<<"$ways")
}

shared_memory()
{
    find /dev/shm -mindepth 1 -name 'hostile*'
    ipcs -m 2>/dev/null | grep 0x00000007
}

# Cases are dealt out one after the other. Those that refuse options have no
# pass in which something could be done; and the reference claims no prefetch.
"$cts" run --workload mlp --ranks 2,3 --dry-run >"$folder/cases"
awk -v n="$workers" -v ways="$ways" '
    BEGIN { split(ways, way, "\n") }
    /options|disagree|[.](pf|pb|rif)[0-9]/ { next }
    int((NR - 1) / n) % 2 && way[++w] { print $1, way[w] }
' "$folder/cases" >"$folder/hostile"
result 'every way has a case' "$([ "$(wc -l <"$folder/hostile")" -eq \
    "$(wc -l <<<"$ways")" ] || echo 'there are too few')"

mkdir "$folder/tmp"
code=0
FSDP_HOSTILE=$folder/hostile TMPDIR=$folder/tmp timeout 300 "$cts" run \
    --engine "$engine" --workload mlp --ranks 2,3 --jobs "$workers" \
    --timeout 5 --partial-ok --records "$folder/records" \
    --report "$folder/report" >"$folder/out" 2>"$folder/err" </dev/null ||
    code=$?
result 'the run ends' "$([ "$code" = 1 ] || {
    echo "exit $code"
    tail -n 3 "$folder/err"
})"

# How a case ended, and the requirements that it failed.
awk -v hostile="$folder/hostile" '
    function field(name) {
        return match($0, "\"" name "\":\"[^\"]*\"") ? substr($0,
            RSTART + length(name) + 4, RLENGTH - length(name) - 5) : ""
    }
    BEGIN { while ((getline <hostile) > 0) way[$1] = $2 }
    /"type":"case"/ { is[field("case")] = field("outcome") " " field("reason") }
    /invariance|replicated-single/ { next } # compares with cases that were not right
    /"type":"item"/ && /"outcome":"(fail|error|timeout|incomplete)"/ {
        why[field("case")] = why[field("case")] " " field("requirement")
    }
    END {
        for (c in is)
            print c in way ? way[c] : "(right)", is[c] why[c], c in way ? "" : c
        for (c in way)
            if (!(c in is)) print way[c], "(not judged)"
    }
' "$folder/report" | sort >"$folder/became"
grep -v '^(right)' "$folder/became" | cut -c1-150
right='^\(right\) (pass|not-claimed the engine does not claim: prefetch)  *mlp'
result 'all others are right' "$(grep '^(right)' "$folder/became" |
    grep -Ev "$right" | head -n 3)"
result 'each way has an outcome' "$([ "$(grep -c -v '^(right)' \
    "$folder/became")" -eq "$(wc -l <<<"$ways")" ] || echo 'not each')"
result 'processes of an engine are findings' "$(grep -E \
    '^(adopts-nobody|chain|child|daemon|many|program)' "$folder/became" |
    grep -v 'comm.no-private-channel')"
result 'no process is left' "$(
    pgrep -f "$engine"
    pgrep hostile-daemon
)"
result 'no file is left' "$(
    ls -A "$folder/tmp"
    find "$folder/records" -name '.worker-*'
    find "$folder/records" ! -type d ! -type f
)"
result 'no shared memory is left' "$(shared_memory)"
finish 8

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# kill_matrix_test.sh - what `mutants` prints: a line a mutant or, with --json,
# an array and nothing else; and its exit codes. (That mutants are judged as
# they list, a test of each shows.)
#
# usage: kill_matrix_test.sh FSDP-CTS [INCLUDE-FOLDER]
set -uo pipefail

# shellcheck source=conformance/cli/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"
cd "$folder" || exit 1

# prints WHAT CODE ARGUMENT...: to out; nothing on stderr.
prints()
{
    local what=$1 code=$2 got
    shift 2
    "$cts" mutants --quiet "$@" >out 2>err
    got=$?
    result "$what" "$([ "$got" = "$code" ] || echo "exit $got, not $code"
        cat err; diff wanted out)"
}

cat >wanted <<'END'
ok   divide-twice                 reduce.fold reduce.scale
ok   gives-up                     run.completes
2 passed, 0 failed
END
prints 'lines' 0 gives-up divide-twice
cat >wanted <<'END'
[
 {
  "name": "divide-twice",
  "outcome": "ok",
  "found": "reduce.fold reduce.scale",
  "kills": "reduce.fold reduce.scale"
 },
 {
  "name": "gives-up",
  "outcome": "ok",
  "found": "run.completes",
  "kills": "run.completes"
 }
]
END
prints 'JSON' 0 gives-up divide-twice --json
"$cts" mutants isolated-forks --world threads --quiet --json >out 2>err
got=$?
result 'one that cannot be shown' "$([ $got = 77 ] || echo "exit $got"
    grep -qx '  "outcome": "skip",' out || cat out)"
"$cts" mutants divide-twice --engine unsharded --quiet --json >out 2>err
got=$?
result 'one of which something else was found' "$([ $got = 1 ] ||
    echo "exit $got"
    grep -qx '  "outcome": "BAD",' out || cat out)"
"$cts" mutants divide-twice --engine ./missing.so --quiet --json >out 2>err
got=$?
result 'no engine' "$([ $got = 64 ] || echo "exit $got"; cat out)"
finish 5

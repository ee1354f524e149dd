#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# explain_test.sh - explain has something to say of every requirement: its
# sentence, and each mutant that dies of it.
#
# usage: explain_test.sh FSDP-CTS INCLUDE-FOLDER
set -uo pipefail

# shellcheck source=conformance/cli/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"
cd "$folder" || exit 1

"$cts" explain reduce.scale >out 2>err || cat err
result 'one requirement' "$(
    for words in 'reduce.scale  MUST, level reduce, since' \
        '  Reduced gradients are multiplied by 1 / divide factor exactly once.' \
        '    divide-twice (seen in meta-pytorch/torchtune#2172)' \
        '    accumulate.synced' 'needs, to be told:'; do
        grep -F -- "$words" out >found || echo "lacks: $words"
    done)"

"$cts" explain '*' >all 2>err
"$cts" list requirements --json >listed
grep -o '"id": *"[^"]*"' listed | sed 's/.*"\(.*\)"/\1/' | sort >wanted
sed -n 's/^\([a-z0-9-]*\.[a-z.-]*\)  [MS].*/\1/p' all | sort >got
result 'each of them' "$(diff wanted got)"

# Every mutant is named below each requirement that it is killed by.
"$cts" list mutants --json >wrong
grep -o '"kills": *"[^"]*"' wrong | sed 's/.*: *"//; s/"//' | wc -w >wanted
awk '/^  engines get it wrong so:/ { n = 1; next } /^  [a-z]/ { n = 0 }
    n && /^    [a-z]/ { count++ } END { print count }' all >got
result 'each mutant' "$(diff wanted got)"

"$cts" explain memory.peak >out 2>err
result 'near misses' "$([ $? -eq 64 ] || echo 'another code'
    grep -F "did you mean 'memory.peak-bound'?" err >found || cat err)"
"$cts" list levels >out && "$cts" list strategies >>out
result 'levels and strategies' "$(
    sed -n '1p;9,10p' out | tr '\n' ' ' >got
    [ "$(<got)" = 'run errors full-shard ' ] || cat out)"

finish 5

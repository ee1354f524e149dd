#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# memory_test.sh - what FSDP2 holds is measured, and FSDP2 that holds more is
# found by the requirement that says so, and by no other. Skips (77) where
# Python has no torch with FSDP2: FSDP_PYTHON names one that has.
#
# usage: memory_test.sh FSDP-CTS
set -uo pipefail

cts=$(realpath "$1")
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=${FSDP_PYTHON:-python3}
if ! why=$("$python" -W ignore -c '
from torch.distributed.fsdp import fully_shard' 2>&1); then
    echo "skip: $python: ${why##*$'\n'} (set FSDP_PYTHON)"
    exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# Each fault in a case of its own, so that PyTorch is imported once for all.
plain=mlp.odd.natural.full-shard
end=per-parameter.layer.rank
as_it_is=$plain.k2.$end.ns.momentum
fault=("unit-kept@$plain.k3.$end.ns.momentum"
    "copy-kept@$plain.k2.$end.ss.adamw"
    "gradients-kept@$plain.k3.$end.ss.adamw"
    "whole-kept@$plain.k2.$end.s.sgd.again")
want=(memory.rest-after-step memory.prefetch-bound memory.rest-after-step
    memory.rest-after-shard)
adapter="$python $here/pytorch_fsdp2.py"
cases=$as_it_is
for f in "${fault[@]}"; do
    adapter="$adapter --fault $f"
    cases=$cases,${f#*@}
done
"$cts" run --adapter "$adapter" --case "$cases" --partial-ok --quiet \
    --report "$folder/report" >"$folder/out" 2>&1
bad=0

# outcomes CASE WORD: the requirements with that outcome in the case.
outcomes()
{
    sed -n "s/.*\"requirement\":\"\([^\"]*\)\",\"case\":\"$1\".*\"outcome\":\"\($2\)\".*/\1/p" \
        "$folder/report" 2>/dev/null | sort -u | paste -sd' '
}

# expect WHAT CASE REQUIREMENT: that fails there, and nothing else.
expect()
{
    local got
    got=$(outcomes "$2" 'fail\|error\|timeout\|incomplete')

    if [ "$got" = "$3" ] &&
        [[ " $(outcomes "$2" pass) " = *' run.leaves-nothing '* ]]; then
        echo "$1: ${3:-nothing fails}"
    else
        bad=1
        echo "FAIL $1: found '$got', not '$3'"
        tail -n 3 "$folder/out"
    fi
}

expect 'as it is' "$as_it_is" ''
[[ " $(outcomes "$as_it_is" pass) " = *' memory.prefetch-bound '* ]] || {
    bad=1
    echo "FAIL as it is: memory.prefetch-bound did not pass"
}
for i in "${!fault[@]}"; do
    expect "${fault[i]%@*}" "${fault[i]#*@}" "${want[i]}"
done
exit $bad

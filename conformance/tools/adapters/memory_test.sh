#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# memory_test.sh - what an implementation holds is measured, and one that holds
# more is found by the requirement that says so, and by no other. Skips (77)
# where Python has it not: FSDP_PYTHON names one that has.
#
# usage: memory_test.sh FSDP-CTS pytorch_fsdp2|pytorch_fsdp1|fairscale_fsdp
set -uo pipefail

cts=$(realpath "$1")
engine=$2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=${FSDP_PYTHON:-python3}

# Where it is in Python; what fails as it is (docs/results.md), what bounds its
# peaks, what finds a copy that is kept, and a case without a second life.
layout=flat
known=run.leaves-nothing
bound=memory.prefetch-bound
copies=memory.prefetch-bound
once=k3.flat.layer.rank.s.sgd
case $engine in
pytorch_fsdp2)
    import='from torch.distributed.fsdp import fully_shard'
    layout=per-parameter
    known=
    once=k2.per-parameter.layer.rank.s.sgd.again
    ;;
pytorch_fsdp1)
    import='from torch.distributed.fsdp import FullyShardedDataParallel'
    ;;
fairscale_fsdp)
    import='import fairscale'
    known='memory.peak-gradients run.leaves-nothing'
    bound=memory.peak-bound
    copies=memory.peak-unsharded
    ;;
*)
    sed -n 's/^# usage/usage/p' "$0" >&2
    exit 64
    ;;
esac
if ! why=$("$python" -W ignore -c "$import" 2>&1); then
    echo "skip: $python: ${why##*$'\n'} (set FSDP_PYTHON)"
    exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# Each fault in a case of its own, so that PyTorch is imported once for all.
plain=mlp.odd.natural.full-shard
end=$layout.layer.rank
as_it_is=$plain.k2.$end.ns.momentum
fault=("unit-kept@$plain.k3.$end.ns.momentum"
    "copy-kept@$plain.k2.$end.ss.adamw"
    "gradients-kept@$plain.k3.$end.ss.adamw"
    "whole-kept@$plain.$once")
want=(memory.rest-after-step "$copies" memory.rest-after-step
    memory.rest-after-shard)
adapter="$python $here/$engine.py"
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
        "$folder/report" 2>/dev/null | sort -u
}

# expect WHAT CASE OUTCOME REQUIREMENT: that has it there, and nothing else fails
# but what fails as it is.
expect()
{
    local failed others

    failed=$(outcomes "$2" 'fail\|error\|timeout\|incomplete')
    others=$(grep -vxF "$(printf '%s\n' "$4" $known)" <<<"$failed")
    if [ -z "$others" ] && outcomes "$2" "$3" | grep -qx "$4"; then
        echo "$1: $4: $3"
    else
        bad=1
        echo "FAIL $1: found '$(paste -sd' ' <<<"$failed")'; not $4: $3"
        tail -n 3 "$folder/out"
    fi
}

expect 'as it is' "$as_it_is" pass "$bound"
for i in "${!fault[@]}"; do
    expect "${fault[i]%@*}" "${fault[i]#*@}" fail "${want[i]}"
done
exit $bad

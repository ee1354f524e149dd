#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# torch_train_test.sh - training scripts that know of no probe
# (testing/train_plain.py) under that of torch.distributed: what each has to
# show, what a wrong one shows, and that all train as they do without it.
#
# usage: torch_train_test.sh FSDP-CTS PROBE-FOLDER PROGRAM-FOLDER [SANITIZER]
# Skips where python3, or FSDP_PYTHON, has no torch.
set -uo pipefail
here=$(realpath "$(dirname "$0")")
# shellcheck source=conformance/tools/probes/probe_testing.sh
. "$here/probe_testing.sh"

python=${FSDP_PYTHON:-python3}
"$python" -c 'import importlib.util as u, sys
sys.exit(u.find_spec("torch") is None)' ||
    skip "$python has no torch; FSDP_PYTHON names another"
export OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1

train=("$python" -W ignore "$here/testing/train_forked.py"
    train_plain.py:{fsdp2,fsdp1,ddp,kept,forgotten} train_calls.py:calls)
result 'the scripts train' "$(
    timeout 500 "${train[@]}" >without 2>without.err || cat without.err)"
mkdir logs
result 'and with the probe' "$(timeout 500 "$cts" probe --torch logs \
    "${train[@]}" >with 2>with.err || cat with.err)"
result 'the same, to the last digit' "$(diff without with)"
result 'and it has nothing to say' "$(grep 'fsdp-cts' with.err)"

steps=(--in-steps --steps 3)
units=16448,65792x3
sharded=(--units "$units" "${steps[@]}" --keep-root)
judge 'FSDP2' 0 'AS EXPECTED' logs/fsdp2 "${sharded[@]}"
judge 'FSDP1' 0 'AS EXPECTED' logs/fsdp1 "${sharded[@]}"
judge 'DDP' 0 'AS EXPECTED' logs/ddp --units 213824 "${steps[@]}" \
    --strategy no-shard --also broadcast:9:1:i32 --also broadcast:1:1:i32
judge 'FSDP2 that keeps what it gathered' 1 \
    'torch rank 1: all-gather of 32896 f32 over 2 ranks: 9 calls, 18 expected' \
    logs/kept "${sharded[@]}"
judge 'is what it says' 0 'AS EXPECTED' logs/kept --units "$units" \
    "${steps[@]}" --strategy shard-grad-op
judge 'FSDP2 that forgets a block' 1 \
    'torch rank 0: all-gather of 41120 f32 over 2 ranks: 3 calls, 0 expected' \
    logs/forgotten "${sharded[@]}"
judge 'steps are alike' 0 '3 steps; 0 make other calls' logs/fsdp2
judge 'another number of steps' 1 '3 marked steps, 4 expected' logs/fsdp2 \
    --units "$units" --in-steps --steps 4 --keep-root
judge 'and what is between them counts without --in-steps' 1 \
    'all-reduce of 1 f32 over 2 ranks: 3 calls, 0 expected' logs/fsdp2 \
    --units "$units" --steps 3 --keep-root

# Storages: 213824 elements of 4 bytes, half of them here; gradients as many,
# and moments twice as many behind the first step.
between() # WHAT LEAST MOST KEY NAME
{
    local n

    n=$(sed -n "s/.*\"mark\",\"name\":\"$5\".*\"$4\":\([0-9]*\)[,}].*/\1/p" \
        logs/fsdp2/storages-0-*)
    result "$1" "$([ "$n" -ge "$2" ] && [ "$n" -le "$3" ] ||
        echo "$4 is $n, not $2 to $3")"
}
quarter=$((213824 * 2))
between 'parameters' $quarter $((quarter + 50000)) live 'step 0'
between 'and moments' $((3 * quarter)) $((3 * quarter + 50000)) live 'step 2'
between 'and gradients' $((4 * quarter)) $((4 * quarter + 50000)) live \
    'after step 2'

# Every function of torch.distributed: the kind, n and total of each call.
judge 'functions' 0 'all-to-all-v' logs/calls
fields='"kind":"\([a-z-]*\)","comm":\([0-9]*\),"dtype":"\([a-z0-9]*\)"'
fields+=',"n":\([0-9]*\),"total":\([0-9]*\),.*"op":\([a-z"]*\),'
fields+='.*"mode":"\([a-z]*\)"'
sed -n "s/.*$fields.*/\1 \2 \3 \4 \5 \6 \7/p
    s/.*\"type\":\"\(failed\)\".*/\1/p" logs/calls/torch-1-* >calls
result 'each as it was called' "$(diff - calls <<'TEXT'
all-gather 0 f32 2 4 null blocking
all-gather 0 f32 3 6 null blocking
reduce-scatter 0 f32 2 4 "sum" blocking
reduce-scatter 0 f32 3 6 "sum" blocking
all-reduce 0 f32 1 1 "max" blocking
all-reduce 0 bf16 5 5 "sum" nonblocking
broadcast 0 i64 7 7 null blocking
reduce 0 f32 2 2 "sum" blocking
gather 0 f32 2 4 null blocking
scatter 0 f32 2 4 null blocking
all-to-all 0 f32 2 4 null blocking
all-to-all-v 0 f32 4 4 null blocking
barrier 0 none 0 0 null blocking
all-reduce 0 f32 8 8 "sum" blocking
all-reduce 0 f32 9 9 "sum" blocking
all-reduce 0 f32 6 6 "sum" nonblocking
all-gather 0 f32 10 20 null nonblocking
all-reduce 1 f32 12 12 "sum" blocking
all-gather-v 0 f32 1 4 null blocking
failed
TEXT
)"
judge 'messages are counted' 0 '1 messages of 8 bytes' \
    logs/calls/torch-1-*.jsonl

finish 19

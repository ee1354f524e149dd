#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# torchrun_test.sh - an adapter whose ranks torchrun starts shows what it shows
# by itself, bit for bit, on one host and on two that share a folder; a rank that
# raises ends all and is named, as one is whose host is cut off; a case of
# another world is left without a record, and why is said. Skips (77) where
# Python has no FSDP2 (FSDP_PYTHON names one that has); the part with two hosts
# is left out, with the reason, where there can be none (world/hosts).
#
# usage: torchrun_test.sh FSDP-CTS
set -uo pipefail

cts=$(realpath "$1")
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=${FSDP_PYTHON:-python3}
adapter=$here/pytorch_fsdp2.py
begin=mlp.odd.natural.full-shard.k2.per-parameter.pair
cases=$begin.rank.s.adamw.rates,$begin.ring.s.momentum.thaw.frozen-alternate
one=$begin.rank.s.adamw.rates
other=${begin/.k2./.k3.}.rank.s.adamw.frozen-alternate
failed=0

# records FOLDER ADAPTER CASES: what a run of it ends with, and shows
records()
{
    rm -rf "$1"
    "$cts" run --adapter "$2" --case "$3" --partial-ok --timeout 60 \
        --records "$1" >"$1.out" 2>&1
    echo "$?" >"$1.code"
}

# check WHAT COMMAND...
check()
{
    local what=$1
    shift
    if ! "$@"; then
        echo "torchrun_test.sh: $what" >&2
        failed=1
    fi
}

# same FOLDER FOLDER: every tensor of the records, byte for byte
# shellcheck disable=SC2317 # check calls it
same()
{
    local file n=0
    while read -r file; do
        n=$((n + 1))
        cmp "$1/$file" "$2/$file" || return 1
    done < <(cd "$1" && find mlp.* -name '*.safetensors')
    [ "$n" -ge 4 ]
}

# The part beside two hosts, which world/hosts starts.
if [ "${1-}" = --beside ]; then
    at=$2 cts=$3
    cat >"$at/adapter" <<END
#!/bin/sh
# One rank on each host; both get the same command. Where it has failed on the
# first the other one's is ended, as launchers do.
begin="GLOO_SOCKET_IFNAME=eth0 $python -m torch.distributed.run --nnodes 2 \
--nproc-per-node 1 --master-addr 10.77.0.1 --master-port 29400 --node-rank"
"$at/on" 2 "\$begin 1 $adapter --case-seconds 20 \$*" &
"$at/on" 1 "\$begin 0 $adapter --case-seconds 20 \$*"
code=\$?
[ "\$code" = 0 ] || "$at/on" 2 'pkill -f distributed.run'
wait
exit "\$code"
END
    chmod +x "$at/adapter"
    records "$at/two" "$at/adapter" "$cases"
    # The cable of host 2 is pulled while rank 1 has not yet been met.
    records "$at/cut" "$at/adapter" "$one" &
    until [ -e "$at/cut/job/$one/scratch" ]; do
        kill -0 $! 2>/dev/null || break
        sleep 0.02
    done
    ip link set e2 down
    wait $!
    exit 0
fi

if ! "$python" -c 'from torch.distributed.fsdp import fully_shard' 2>/dev/null
then
    echo "skipped: $python has no FSDP2"
    exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
torchrun="$python -m torch.distributed.run --nproc-per-node 2 $adapter"

records "$folder/own" "$python $adapter" "$cases"
records "$folder/one" "$torchrun" "$cases"
check "$(tail -1 "$folder/own.out")" [ "$(cat "$folder/own.code")" = 0 ]
check "$(tail -1 "$folder/one.out")" [ "$(cat "$folder/one.code")" = 0 ]
check "torchrun's ranks show something else" same "$folder/own" "$folder/one"

records "$folder/raises" "$torchrun --fault raises" "$one"
check "a rank that raises is not the engine's fault" \
    [ "$(cat "$folder/raises.code")" = 1 ]
check "who raised, and what, is not said: $(cat "$folder/raises.out")" \
    grep -q 'where  run, rank 1$' "$folder/raises.out"
check "the other rank was not ended because of it" \
    grep -q 'exit_status": -10' "$folder/raises/$one/case.json"

records "$folder/other" "$torchrun" "$one,$other"
check "a case of three ranks was played by two" \
    [ "$(cat "$folder/other.code")" = 2 ]
check "that it was not played, and why, is not said" \
    grep -q "$other: not played: it takes 3 ranks, and torchrun started 2" \
    "$folder/other/job/output.txt"

mkdir "$folder/hosts"
"$here/../../world/hosts" 2 "$folder/hosts" "$0" --beside "$folder/hosts" \
    "$cts" >"$folder/hosts.out" 2>&1
status=$?
if [ "$status" = 77 ]; then
    sed 's/^skipped: /without two hosts: /' "$folder/hosts.out"
    exit "$failed"
fi
check "two hosts: $(tail -3 "$folder/hosts.out")" [ "$status" = 0 ]
check "two hosts: $(tail -1 "$folder/hosts/two.out")" \
    [ "$(cat "$folder/hosts/two.code")" = 0 ]
check "two hosts show something else" same "$folder/own" "$folder/hosts/two"
check "a host that is cut off is no failure: $(tail -1 "$folder/hosts/cut.out")" \
    [ "$(cat "$folder/hosts/cut.code")" = 1 ]
check "whose host was cut off is not said: $(cat "$folder/hosts/cut.out")" \
    grep -q 'rank 1 made no progress' "$folder/hosts/cut.out"
check "what was not heard of is not said" grep -q \
    'nothing was heard of rank 1 or its host' "$folder/hosts/cut/job/output.txt"
exit "$failed"

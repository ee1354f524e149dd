#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The engine on the emulated GPU, whose streams do their work in drawn orders
# (FSDP_EMULATED_ORDER), over NCCL and over CUDA IPC: all is right, to the bit,
# in every one. And an engine that forgets a wait has other losses.
# usage: emulated_orders_test.sh FSDP-CTS PLUGIN [ORDER ...]
set -euo pipefail

cts=$1
plugin=$2
shift 2
[ $# -gt 0 ] || set -- early 1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export FSDP_CUDA_STAGING=4096
plain=gpt.tiny.natural.full-shard.k3.flat.layer.rank.s.sgd.pf2.pb1.rif1
# Copies from the host and to it have streams of their own.
full=mlp.odd.natural.full-shard.k3
offloaded=$full.per-parameter.layer.rank.ss.adamw.bf16.offload.pf1.pb1.rif1

# run NAME [OPTION ...]: the losses of all ranks, with their bits.
run()
{
    local name=$1
    shift
    timeout 100 "$cts" run --engine "$plugin" --case "$case" --timeout 60 \
        --jobs 1 --partial-ok --quiet --records "$folder/$name" "$@" \
        >"$folder/$name.said" 2>&1 || echo "exit $?" >>"$folder/$name.said"
    awk '/"losses"/ { on = 1 } /"other_losses"/ { on = 0 } on' \
        "$folder/$name/$case"/rank-*.json >"$folder/$name.losses"
    rm -rf "${folder:?}/$name"
}

# orders NAME ORDER ...: of the case, on eight GPUs and on one.
orders()
{
    local name=$1
    shift
    for order; do
        for gpus in 8 1; do
            local this=$name$order-$gpus
            FSDP_EMULATED_GPUS=$gpus FSDP_EMULATED_ORDER=$order run "$this"
            if ! grep -q PASSED "$folder/$this.said"; then
                echo "order $order, $gpus GPUs:" >&2
                cat "$folder/$this.said" >&2
                exit 1
            fi
            cmp "$folder/$name$1-8.losses" "$folder/$this.losses"
            echo "${name}order $order, $gpus GPUs: ok"
        done
    done
}

case=$offloaded
orders 'offloaded, ' "$@"
case=$plain
orders '' "$@"
if [ "$(grep -c 0x "$folder/$1-8.losses")" -lt 12 ]; then
    echo 'there are too few losses' >&2
    exit 1
fi

# What is brought in before the last reader is done.
FSDP_EMULATED_ORDER=1 run wrong --mutant no-wait-dead-reuse \
    --requirement num.curve
if cmp -s "$folder/$1-8.losses" "$folder/wrong.losses"; then
    echo 'an engine that forgets a wait has the same losses' >&2
    exit 1
fi
echo 'a wait that is forgotten: other losses'

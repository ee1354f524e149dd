#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What goes wrong on GPUs, injected into the emulation: every rank ends with
# one clear line, in time, and no process is left behind.
# usage: faults_test.sh FSDP-CTS PLUGIN
set -euo pipefail

cts=$1
plugin=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
case=mlp.seed.natural.full-shard.k2.flat.layer.rank.s.sgd.steps40
export FSDP_CUDA_STAGING=4096 FSDP_CUDA_TIMEOUT=2

# expect NAME TEXT [VARIABLE=VALUE ...]: the run fails, and each rank's record
# has the text in its message, or says that another one failed first.
expect() {
    local name=$1 text=$2 began=$SECONDS status=0
    shift 2
    env "$@" timeout 120 "$cts" run --engine "$plugin" --case "$case" \
        --records "$folder/$name" --partial-ok \
        >"$folder/$name.said" 2>&1 || status=$?
    if [ "$status" != 1 ]; then
        echo "$name: exit code $status, not 1" >&2
        cat "$folder/$name.said" >&2
        exit 1
    fi
    if ! grep -qF -- "$text" "$folder/$name.said"; then
        echo "$name: no '$text' in:" >&2
        cat "$folder/$name.said" >&2
        exit 1
    fi
    if [ $((SECONDS - began)) -gt 60 ]; then
        echo "$name: took $((SECONDS - began)) s" >&2
        exit 1
    fi
    echo "$name: ok"
}

# Each of these is also shown to pass without the fault.
env timeout 120 "$cts" run --engine "$plugin" --case "$case" --partial-ok \
    --quiet >"$folder/good" 2>&1 ||
    { cat "$folder/good" >&2; exit 1; }

expect no-device 'no GPU: no CUDA-capable device is detected' \
    FSDP_EMULATED_FAULT=no-device
expect no-device-somewhere 'rank 1: no GPU: no CUDA-capable device' \
    FSDP_EMULATED_FAULT=no-device@1
expect old-driver 'the GPU driver supports CUDA 11.4; this build needs 13.0' \
    FSDP_EMULATED_FAULT=old-driver
expect few-gpus '2 ranks on this host, too few GPUs for one each' \
    FSDP_EMULATED_GPUS=1 FSDP_CUDA_COMM=nccl
expect ipc-rank-dies 'killed by signal 11' FSDP_EMULATED_GPUS=1 \
    FSDP_EMULATED_FAULT=launch-dies:40@1
expect no-image 'this build has no kernels for this GPU' \
    FSDP_EMULATED_FAULT=no-image
expect nccl-version 'NCCL: version 3.1.0 was found, 2.x is needed' \
    FSDP_EMULATED_FAULT=nccl-version
expect no-memory 'no memory' FSDP_EMULATED_FAULT=no-memory:1
expect gpu-error 'an illegal memory access was encountered' \
    FSDP_EMULATED_FAULT=launch:40@1
expect nccl-error 'NCCL: remote process exited or there was a network error' \
    FSDP_EMULATED_FAULT=nccl-error:5@1
expect nccl-hang 'waiting for the GPU: nothing has happened for' \
    FSDP_EMULATED_FAULT=nccl-hang:5@0
expect rank-dies 'killed by signal 9' FSDP_EMULATED_FAULT=rank-dies:5@1

# A ring that runs another way is seen, and our own fold takes its place.
ring=$("$cts" list cases |
    sed -n "/^mlp.wide.*full-shard.k4.flat.*.ring./p" | sed -n 1p)
for fault in none nccl-order; do
    FSDP_EMULATED_FAULT=$fault timeout 120 "$cts" run --engine "$plugin" \
        --case "$ring" --partial-ok --quiet >"$folder/ring" 2>&1 ||
        { echo "ring, $fault:" >&2; cat "$folder/ring" >&2; exit 1; }
    echo "ring, $fault: ok"
done

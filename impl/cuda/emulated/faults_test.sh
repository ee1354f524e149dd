#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What goes wrong on GPUs, injected into the emulation: every rank ends with
# one clear line, in time, and no process is left behind.
# usage: faults_test.sh FSDP-CTS PLUGIN [REAL-PLUGIN]
set -euo pipefail

cts=$1
plugin=$2
folder=$(mktemp -d)
trap 'wait; rm -rf "$folder"' EXIT
case=mlp.seed.natural.full-shard.k2.flat.layer.rank.s.sgd.steps40
export FSDP_CUDA_STAGING=4096 FSDP_CUDA_TIMEOUT=2

fail()
{
    echo "$1: $2" >&2
    cat "$folder/$1.said" >&2
    exit 1
}

# Processes that still have this run's mark in their environment.
left_behind()
{
    local n=0 file
    for file in /proc/[0-9]*/environ; do
        if grep -qsz "^FSDP_FAULTS_TEST=$1\$" "$file"; then
            n=$((n + 1))
        fi
    done
    echo "$n"
}

# one_line NAME RANK: what the rank's record says: a line that is not empty.
# The record of a rank that was killed says by which signal.
one_line()
{
    local file=$folder/$1/$case/rank-$2.json
    if [ ! -s "$file" ]; then
        grep -q '"signal": *[1-9]' "$folder/$1/$case/case.json" ||
            fail "$1" "rank $2 has left nothing"
        return
    fi
    awk -F'"message": *"' '
        NF > 1 {
            split($2, text, "\"")
            lines += text[1] != "" && text[1] !~ /\\n/
        }
        END { exit lines != 1 }' "$file" ||
        fail "$1" "rank $2 does not say one line: $(cat "$file")"
}

# expect NAME TEXT [VARIABLE=VALUE ...]: the run fails, the text is what it
# says first, and every rank says one line. (What is killed by signal 9 has no
# verdict: exit code 2.)
expect()
{
    local name=$1 text=$2 began=$SECONDS status=0 rank want=1
    shift 2
    [ "$text" != 'killed by signal 9' ] || want=2
    env "$@" FSDP_FAULTS_TEST="$$-$name" timeout 120 "$cts" run \
        --engine "$plugin" --case "$case" --records "$folder/$name" \
        --partial-ok >"$folder/$name.said" 2>&1 || status=$?
    [ "$status" = "$want" ] || fail "$name" "exit code $status, not $want"
    grep -qF -- "$text" "$folder/$name.said" || fail "$name" "no '$text'"
    # The watchdog's 20 seconds, and what a busy machine takes.
    [ $((SECONDS - began)) -le 60 ] ||
        fail "$name" "took $((SECONDS - began)) s"
    if grep -qF 'which gets a context' "$folder/$name.said"; then
        fail "$name" 'a GPU that is not its own has a context of the process'
    fi
    for rank in 0 1; do
        one_line "$name" "$rank"
    done
    [ "$(left_behind "$$-$name")" = 0 ] || fail "$name" 'a process is left'
    echo "$name: ok"
}

# Without a fault it passes; and a process that is left would be seen.
env timeout 120 "$cts" run --engine "$plugin" --case "$case" --partial-ok \
    --quiet >"$folder/good" 2>&1 ||
    { cat "$folder/good" >&2; exit 1; }
FSDP_FAULTS_TEST="$$-seen" sleep 30 &
sleeper=$!
for ((i = 0; i < 50; i++)); do
    seen=$(left_behind "$$-seen")
    [ "$seen" = 0 ] || break
    sleep 0.1
done
kill "$sleeper"
[ "$seen" = 1 ] || { echo "the sleeper was seen $seen times" >&2; exit 1; }

fault=FSDP_EMULATED_FAULT
# beside NAME ...: as expect, while the others are tried: what hangs is waited
# for, for a quarter of a minute, in which nothing runs.
waiting=()
beside()
{
    expect "$@" &
    waiting+=($!)
}

beside launch-hang 'waiting for the GPU: nothing has happened for' \
    $fault=launch-hang:40@1
beside nccl-hang 'waiting for the GPU: nothing has happened for' \
    $fault=nccl-hang:5@0
# What frees memory, aborts or ends then does not wait for what never ends.
beside launch-hang-both 'nothing has happened for' $fault=launch-hang:40
beside ipc-hang 'nothing has happened for' FSDP_EMULATED_GPUS=1 \
    $fault=launch-hang:40@0
expect no-device 'no GPU: no CUDA-capable device is detected' $fault=no-device
expect no-device-somewhere 'rank 1: no GPU: no CUDA-capable device' \
    $fault=no-device@1
expect old-driver 'the GPU driver supports CUDA 11.4; this build needs 13.0' \
    $fault=old-driver
expect few-gpus '2 ranks on this host, too few GPUs for one each' \
    FSDP_EMULATED_GPUS=1 FSDP_CUDA_COMM=nccl
expect no-image 'this build has no kernels for this GPU' $fault=no-image
expect nccl-version 'NCCL: version 3.1.0 was found, 2.x is needed' \
    $fault=nccl-version
expect nccl-version-somewhere 'NCCL: version 3.1.0 was found, 2.x is needed' \
    $fault=nccl-version@1
expect nccl-init 'NCCL' $fault=nccl-init@1
expect no-staging 'no memory for staging' $fault=no-memory:1
expect no-pinned 'no memory' $fault=no-pinned:2@1
expect no-memory 'the GPU has too little memory: ' $fault=no-memory:4@1
expect gpu-error 'an illegal memory access was encountered' $fault=launch:40@1
expect gpu-error-everywhere 'an illegal memory access was encountered' \
    $fault=launch:60
expect launch-refused 'too many resources requested for launch' \
    $fault=launch-refused:30@0
expect nccl-error 'NCCL: remote process exited or there was a network error' \
    $fault=nccl-error:5@1
expect rank-dies 'killed by signal 9' $fault=rank-dies:5@1
# Ranks on one GPU, and NCCL in any case.
expect nccl-one-gpu 'too few GPUs for one each' FSDP_EMULATED_GPUS=1 \
    FSDP_CUDA_COMM=nccl
expect ipc-rank-dies 'killed by signal 11' FSDP_EMULATED_GPUS=1 \
    $fault=launch-dies:40@1
expect ipc-gpu-error 'an illegal memory access was encountered' \
    FSDP_EMULATED_GPUS=1 $fault=launch:40@0

# The real one, where there is no GPU.
emulated=$plugin
if [ -n "${3:-}" ] && [ ! -e /dev/nvidiactl ]; then
    plugin=$3
    expect real-plug-in 'no GPU driver; this build needs one for CUDA'
fi

# A ring that runs another way is seen, and our own fold takes its place: also
# where only what is longer than staging memory has such a ring.
"$cts" list cases >"$folder/cases"
ring=$(sed -n "/^mlp.wide.*full-shard.k4.flat.*.ring./p" "$folder/cases" |
    sed -n 1p)
for fault in none nccl-order nccl-channels; do
    FSDP_EMULATED_FAULT=$fault timeout 120 "$cts" run --engine "$emulated" \
        --case "$ring" --partial-ok --quiet >"$folder/ring" 2>&1 ||
        { echo "ring, $fault:" >&2; cat "$folder/ring" >&2; exit 1; }
    if grep -q 'not pinned' "$folder/ring"; then
        echo "ring, $fault: a copy blocks in the runtime" >&2
        exit 1
    fi
    echo "ring, $fault: ok"
done
for process in "${waiting[@]}"; do
    wait "$process"
done

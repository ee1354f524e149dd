#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# ci/gpu from end to end, with the emulation in place of a GPU: a build folder
# whose plug-in is the emulated one, and an nvidia-smi that names one GPU.
# usage: gpu_script_test.sh CI-GPU FSDP-CTS PLUGIN DEVICE-TEST
set -euo pipefail

script=$1
cts=$2
plugin=$3
device_test=$4
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

mkdir -p "$folder/build/bin" "$folder/build/lib" "$folder/build/tests" \
    "$folder/path"
ln -s "$cts" "$folder/build/bin/fsdp-cts"
ln -s "$plugin" "$folder/build/lib/fsdp-impl-cuda.so"
ln -s "$device_test" "$folder/build/tests/cuda_device_test_gpu"
cat >"$folder/path/nvidia-smi" <<'CODE'
#!/bin/sh
echo 'index, name, driver_version, memory.total [MiB], pci.bus_id'
echo '0, Emulated, 0.0, 4096 MiB, 00000000:01:00.0'
CODE
chmod +x "$folder/path/nvidia-smi"
export PATH=$folder/path:$PATH FSDP_EMULATED_GPUS=1 FSDP_CUDA_STAGING=4096

status=0
"$script" --build "$folder/build" --out "$folder/out" --quick --ranks 1,3 \
    >"$folder/said" 2>&1 || status=$?

# wants STATUS LINE...: the exit code, and lines of the summary.
wants() {
    local line want=$1
    shift
    for line in "$@"; do
        if ! grep -qE -- "$line" "$folder/out/summary.txt"; then
            echo "no '$line' in the summary:" >&2
            cat "$folder/said" >&2
            exit 1
        fi
    done
    if [ "$status" != "$want" ]; then
        echo "exit code $status, not $want" >&2
        cat "$folder/said" >&2
        exit 1
    fi
}

wants 0 '^1 GPU\(s\): Emulated, driver 0.0$' \
    '^cuda_ops_test: not built' '^cuda_device_test: passed$' \
    '^K = 1, a GPU a rank: INCOMPLETE .* all of it passed' \
    '^K = 3, sharing 1 GPU\(s\): INCOMPLETE .* all of it passed' \
    '^all passed$'
test -s "$folder/out/k3.jsonl"

# A failure shows in the summary and in the exit code.
status=0
FSDP_EMULATED_FAULT=no-image "$script" --build "$folder/build" \
    --out "$folder/out" --quick --ranks 1 >"$folder/said" 2>&1 || status=$?
wants 1 '^K = 1, a GPU a rank: NON-CONFORMANT' '^something FAILED$'

# And a folder that is no build is none.
status=0
"$script" --build "$folder/path" --out "$folder/out" >"$folder/said" 2>&1 ||
    status=$?
wants 2 'not there; was the build configured'
echo ok

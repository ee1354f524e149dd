#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# ci/gpu from end to end, with the emulation in place of GPUs: a build folder
# whose plug-in is the emulated one; an nvidia-smi and a compute-sanitizer that
# are scripts; a driver and a cuBLAS that are the emulation's.
# usage: gpu_script_test.sh CI-GPU FSDP-CTS PLUGIN DEVICE-TEST DRIVER-FOLDER
set -euo pipefail

script=$(realpath "$1")
cts=$(realpath "$2")
plugin=$(realpath "$3")
device_test=$(realpath "$4")
driver=$(realpath "$5")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

mkdir -p "$folder/build/bin" "$folder/build/lib" "$folder/build/tests" \
    "$folder/path" "$folder/plain"
ln -s "$cts" "$folder/build/bin/fsdp-cts"
ln -s "$plugin" "$folder/build/lib/fsdp-impl-cuda.so"
ln -s "$device_test" "$folder/build/tests/cuda_device_test_gpu"
# A machine with nothing that is optional.
ln -sf /bin/* /usr/bin/* "$folder/plain"
rm -f "$folder"/plain/{mpirun,mpiexec,nvidia-smi,nvcc,compute-sanitizer}
cat >"$folder/path/nvidia-smi" <<'CODE'
#!/bin/sh
echo 'index, name, driver_version, memory.total [MiB], pci.bus_id'
i=0
while [ "$i" -lt "$FSDP_EMULATED_GPUS" ]; do
    echo "$i, Emulated, 0.0, 4096 MiB, 00000000:0$i:00.0"
    i=$((i + 1))
done
CODE
# What the real one prints; SANITIZER_FINDS is what it finds.
cat >"$folder/path/compute-sanitizer" <<'CODE'
#!/bin/sh
[ "$1" != --version ] || { echo 'Emulated'; exit 0; }
while [ "${1#--}" != "$1" ]; do
    case $1 in
    --tool) tool=$2 ;;
    esac
    shift 2
done
echo '========= COMPUTE-SANITIZER'
"$@" || exit $?
case $tool in
memcheck | synccheck) echo "========= ERROR SUMMARY: ${SANITIZER_FINDS:-0} errors" ;;
racecheck) echo "========= RACECHECK SUMMARY: 0 hazards displayed" ;;
esac
[ -z "${SANITIZER_FINDS:-}" ] || exit 86
CODE
# A python3 with a torch that knows the GPU, and prints what pytorch_step.py
# does. What fits with us does not fit there, with two ranks.
cat >"$folder/path/python3" <<'CODE'
#!/bin/sh
[ "$1" != -c ] || exit 0
while [ $# -gt 0 ]; do
    case $1 in
    --ranks) k=$2 ;;
    --size) size=$2 ;;
    --blocks) blocks=$2 ;;
    --shares) shares=yes ;;
    esac
    shift
done
if [ "$size" = gpt-largest ] && [ "$k" = 2 ]; then
    echo 'torch.OutOfMemoryError: CUDA out of memory.'
    exit 1
fi
name=step.$size.fsdp2.k$k.pytorch
for what in attention gemm rest exposed idle communication; do
    [ -z "$shares" ] || echo "$name.share.$what 0.$k share"
done
echo "$name 1000.0 tokens/s, ${blocks:-all} blocks"
CODE
chmod +x "$folder/path/python3" "$folder/path/nvidia-smi" "$folder/path/compute-sanitizer"
before=$PATH
export FSDP_EMULATED_GPUS=1 FSDP_CUDA_STAGING=4096
export FSDP_EMULATED_PLUGIN=$plugin

# runs ARGUMENT...: ci/gpu; its exit code is in $status.
runs()
{
    status=0
    rm -rf "$folder/out"
    "$script" --build "$folder/build" --out "$folder/out" "$@" \
        >"$folder/said" 2>&1 || status=$?
}

# wants STATUS LINE...: the exit code, and lines of the summary.
wants()
{
    local line want=$1
    shift
    for line in "$@"; do
        if ! grep -qE -- "$line" "$folder/out/summary.txt"; then
            echo "no '$line' in the summary:" >&2
            cat "$folder/said" "$folder"/out/*.txt >&2
            exit 1
        fi
    done
    if [ "$status" != "$want" ]; then
        echo "exit code $status, not $want" >&2
        cat "$folder/said" >&2
        exit 1
    fi
}

# One GPU, and nothing that is optional: no Open MPI, sanitizer, nvcc, cuBLAS.
PATH=$folder/plain
ln -s "$folder/path/nvidia-smi" "$folder/plain/nvidia-smi"
runs --quick --ranks 1,3
wants 0 '^1 GPU\(s\): Emulated, driver 0.0$' \
    '^cuda_ops_test: not built' '^cuda_device_test: passed$' \
    '^K = 1, a GPU a rank: INCOMPLETE .* all of it passed' \
    '^K = 3, sharing 1 GPU\(s\): INCOMPLETE .* all of it passed' \
    '^K = 2, CUDA IPC: INCOMPLETE .* all of it passed' \
    '^K = 2, NCCL over sockets, a try: ' '^Open MPI: not there$' \
    '^trace: [0-9]+ events$' '^compute-sanitizer: not there$' \
    '^bench-gpu: [0-9]+ results$' '^bench-steps: [0-9]+ results$' \
    '^bench-shares: 7 results$' '^PyTorch: not there$' '^all passed$'
test -s "$folder/out/k3.jsonl"
test -s "$folder/out/bench-gpu.json"
test -s "$folder/out/bench-shares.json"
# shellcheck disable=SC2016 # backquotes are the table's
grep -qxF '| share of a step | `gpu-small.gpt-124m.k1.impl` |' \
    "$folder/out/bars.md"
grep -qE '^[|] matrix products [|] 0[.][0-9]{3} [|]$' "$folder/out/bars.md"
grep -q 'Small shapes: no measurement' "$folder/out/bars.md"
grep -q '^| GEMM .* not measured' "$folder/out/bars.md"
if grep -q 'k3' "$folder/out/bench-gpu.txt"; then
    echo 'speed was measured with more ranks than GPUs' >&2
    exit 1
fi
rm "$folder/plain/nvidia-smi"

# Three GPUs, two of them to be used, and all that is optional.
PATH=$folder/path:$before
export FSDP_EMULATED_GPUS=3
LD_LIBRARY_PATH=$driver CUDA_VISIBLE_DEVICES=0,2 runs --quick --ranks 1,2 \
    --only ways,sanitizer,bench
wants 0 '^2 GPU\(s\): Emulated' '^memcheck: clean$' '^racecheck: clean$' \
    '^synccheck: clean$' \
    '^K = 2, NCCL over sockets, a try: passed$' \
    '^PyTorch: step.gpt-256.fsdp2.k2.pytorch 1000.0 tokens/s, all blocks$' \
    '^PyTorch: step.gpt-largest.fsdp2.k1.pytorch 1000.0 tokens/s, 4 blocks$' \
    '^PyTorch with 2 rank\(s\), gpt-largest --blocks 4: does not fit$' \
    '^all passed$'
if command -v mpirun >/dev/null; then
    wants 0 '^(K = 2, Open MPI: INCOMPLETE .* all of it passed|Open MPI: this build is without it)'
fi
grep -q '[.]gemm-4096[.]impl[.]of-cublas' "$folder/out/bench-gpu.txt"
grep -q '"gpu": "Emulated 0"' "$folder/out/bench-gpu.json"
grep -q '[.]unit[.]k2[.]impl ' "$folder/out/bench-gpu.txt"
grep -qE '[.]gpt-124m[.]k2[.]impl[.]memory ' "$folder/out/bench-gpu.txt"
if grep -q 'not measured' "$folder/out/bars.md"; then
    cat "$folder/out/bars.md" >&2
    exit 1
fi
# Ours with one rank and with two, PyTorch's, what fits there.
grep -qE '^[|] attention ([|] 0[.][0-9]{3} ){4}([|] 0[.][12]00 ){3}[|]$' \
    "$folder/out/bars.md"
grep -q '[.]gpt-largest[.]k1[.]impl[.]blocks  *4[.]000' \
    "$folder/out/bench-gpu.txt"

# Failures show in the summary and in the exit code.
SANITIZER_FINDS=3 runs --quick --ranks 1 --only sanitizer
wants 1 '^memcheck: FAILED \(86\)' '^something FAILED$'
FSDP_EMULATED_FAULT=no-image runs --quick --ranks 1 --only manifest,trace,bench
wants 1 '^K = 1, a GPU a rank: NON-CONFORMANT' '^trace: FAILED' \
    '^bench-gpu: FAILED' '^something FAILED$'
FSDP_EMULATED_FAULT=cublas-wrong LD_LIBRARY_PATH=$driver \
    runs --quick --ranks 1 --only bench
wants 1 '^bench-gpu: FAILED'
grep -q 'gemm-4096: element 0 is .*, and cuBLAS says' \
    "$folder/out/bench-gpu.txt"

# No GPU; a folder that is no build; a part that is none.
FSDP_EMULATED_GPUS=0 runs --quick
wants 2 '^no GPU was found; nothing was run$'
status=0
"$script" --build "$folder/path" --out "$folder/out" >"$folder/said" 2>&1 ||
    status=$?
wants 2 'not there; was the build configured'
status=0
"$script" --only everything --out "$folder/out" >"$folder/said" 2>&1 ||
    status=$?
wants 64
echo ok

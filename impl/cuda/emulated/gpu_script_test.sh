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
# shellcheck disable=SC2046 # numbers
trap 'kill $(jobs -p) 2>/dev/null || :; wait; rm -rf "$folder"' EXIT

mkdir -p "$folder/build/bin" "$folder/build/lib" "$folder/build/tests" \
    "$folder/path" "$folder/plain"
ln -s "$cts" "$folder/build/bin/fsdp-cts"
ln -s "$plugin" "$folder/build/lib/fsdp-impl-cuda.so"
ln -s "$device_test" "$folder/build/tests/cuda_device_test_gpu"
ln -s /bin/true "$folder/build/tests/sanitizer_plant_gpu"
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
# The bits of the emulation are for conformance.cuda-emulated.*: where ci/gpu
# makes a choice of cases, a few are played.
mkdir "$folder/few"
cp -r "$folder"/build/{lib,tests} "$folder/few"
mkdir "$folder/few/bin"
cat >"$folder/few/bin/fsdp-cts" <<CODE
#!/bin/sh
case "\$1 \$*" in
*' --case '*) ;;
'run '* | 'list '*) set -- "\$@" --case '*.sgd,*.adamw,*.momentum' ;;
esac
exec "$cts" "\$@"
CODE
chmod +x "$folder/few/bin/fsdp-cts"
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
if [ "${1##*/}" = sanitizer_plant_gpu ]; then
    [ -n "${SANITIZER_BLIND:-}" ] || SANITIZER_FINDS=1
    case $tool.$2 in
    memcheck.memory | racecheck.race | synccheck.barrier) ;;
    *) SANITIZER_FINDS= ;;
    esac
fi
"$@" || exit $?
case $tool in
memcheck | synccheck)
    echo "========= ERROR SUMMARY: ${SANITIZER_FINDS:-0} errors"
    ;;
racecheck)
    echo "========= RACECHECK SUMMARY: ${SANITIZER_FINDS:-0} hazards displayed"
    ;;
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
echo "$name.memory-driver 100.0 MiB"
[ "${PYTORCH_HANGS:-}" != "$size" ] || exec sleep 1000
for what in attention gemm rest exposed idle communication; do
    [ -z "$shares" ] || echo "$name.share.$what 0.$k share"
done
echo "$name 1000.0 tokens/s, ${blocks:-all} blocks"
CODE
chmod +x "$folder/path/python3" "$folder/path/nvidia-smi" "$folder/path/compute-sanitizer"
before=$PATH
export FSDP_EMULATED_GPUS=1 FSDP_CUDA_STAGING=4096
export FSDP_EMULATED_PLUGIN=$plugin
export CUDA_HOME=$folder/none

# begins NAME ARGUMENT...: ci/gpu, beside what follows.
declare -A begun
begins()
{
    local name=$1
    shift
    rm -rf "${folder:?}/$name"
    "$script" --build "$folder/build" --out "$folder/$name" "$@" \
        >"$folder/$name.said" 2>&1 &
    begun[$name]=$!
}

# ends NAME: waits for it; its exit code is in $status.
ends()
{
    status=0
    out=$folder/$1
    said=$folder/$1.said
    wait "${begun[$1]}" || status=$?
}

# runs ARGUMENT...: ci/gpu, to its end.
runs()
{
    begins out "$@"
    ends out
}

# wants STATUS LINE...: the exit code, and lines of the summary.
wants()
{
    local line want=$1
    shift
    for line in "$@"; do
        if ! grep -qE -- "$line" "$out/summary.txt"; then
            echo "no '$line' in the summary:" >&2
            cat "$said" "$out"/*.txt >&2
            exit 1
        fi
    done
    if [ "$status" != "$want" ]; then
        echo "exit code $status, not $want" >&2
        cat "$said" >&2
        exit 1
    fi
}

# One GPU, and nothing that is optional: no Open MPI, sanitizer, nvcc, cuBLAS.
PATH=$folder/plain
ln -s "$folder/path/nvidia-smi" "$folder/plain/nvidia-smi"
runs --quick --ranks 1,3 --build "$folder/few"
wants 0 '^1 GPU\(s\): Emulated, driver 0.0$' \
    '^cuda_ops_test: not built' '^cuda_device_test: passed$' \
    '^K = 1, a GPU a rank: INCOMPLETE .* all of it passed' \
    '^K = 3, sharing 1 GPU\(s\): INCOMPLETE .* all of it passed' \
    '^K = 2, CUDA IPC: INCOMPLETE .* all of it passed' \
    '^K = 2, NCCL over sockets, a try: ' '^Open MPI: not there$' \
    '^trace: [0-9]+ events$' '^compute-sanitizer: not there$' \
    '^bench-operators: [0-9]+ results$' '^bench-steps: [0-9]+ results$' \
    '^bench-gpt: [0-9]+ results$' '^PyTorch: not there$' \
    '^cuBLAS: not there$' \
    '^two ranks on one GPU, ipc, no bar: host time for a unit [0-9.]+ us$' \
    '^two ranks on one GPU, nccl-sockets, no bar: ' \
    '^[|] bits.* K = 3 [|] no case differs [|] INCOMPLETE.* [|] yes [|]$' \
    '^[|] bits.* K = 4 [|] no case differs [|]  [|] not measured [|]$' \
    '^bars: [0-9]+ met, [0-9]+ not met, [0-9]+ not measured$' \
    '^all passed$'
test -s "$folder/out/k3.jsonl"
test -s "$folder/out/bench-operators.json"
test -s "$folder/out/bench-gpt.json"
# shellcheck disable=SC2016 # backquotes are the table's
grep -qxF '| share of a step | `gpu-small.gpt-124m.k1.impl` |' \
    "$folder/out/bars.md"
grep -qE '^[|] matrix products [|] 0[.][0-9]{3} [|]$' "$folder/out/bars.md"
grep -q 'Small shapes: no measurement' "$folder/out/bars.md"
grep -q '^| GEMM .* not measured' "$folder/out/bars.md"
if cat "$folder"/out/bench-*.txt | grep 'k3' >"$folder/k3"; then
    echo 'speed was measured with more ranks than GPUs' >&2
    exit 1
fi
rm "$folder/plain/nvidia-smi"

# Three GPUs, two of them to be used, and all that is optional.
PATH=$folder/path:$before
export FSDP_EMULATED_GPUS=3

# What hangs is stopped, and leaves the rest; what there is no time for is left
# out: half a minute, while the rest of this goes on. Benchmarks take no time
# here, so that a slow machine has enough. And a manifest.
mkdir "$folder/swift"
cp -r "$folder"/build/{lib,tests} "$folder/swift"
mkdir "$folder/swift/bin"
cat >"$folder/swift/bin/fsdp-cts" <<CODE
#!/bin/sh
[ "\$1" = bench ] || exec "$cts" "\$@"
echo 'gpu-small.gpt-124m.k1.impl 1000.0 tokens/s'
CODE
chmod +x "$folder/swift/bin/fsdp-cts"
PYTORCH_HANGS=gpt-256 begins hangs --quick --ranks 1 --only gpt,steps \
    --minutes 0.5 --build "$folder/swift"
begins long --ranks 4 --only manifest --minutes 0.5

LD_LIBRARY_PATH=$driver CUDA_VISIBLE_DEVICES=0,2 runs --quick --ranks 1,2 \
    --only ways,sanitizer,bench --minutes 60 --archive "$folder/all.tar.gz" \
    --build "$folder/few"
wants 0 '^2 GPU\(s\): Emulated' '^memcheck: clean$' '^racecheck: clean$' \
    '^synccheck: clean$' \
    '^K = 2, NCCL over sockets, a try: passed$' \
    '^PyTorch: step.gpt-256.fsdp2.k2.pytorch 1000.0 tokens/s, all blocks$' \
    '^PyTorch: step.gpt-largest.fsdp2.k1.pytorch 1000.0 tokens/s, 4 blocks$' \
    '^PyTorch with 2 rank\(s\), gpt-largest --blocks 4.*: does not fit$' \
    '^all passed$'
if command -v mpirun >/dev/null; then
    wants 0 '^(K = 2, Open MPI: INCOMPLETE .* all of it passed|Open MPI: this build is without it)'
fi
grep -q '[.]gemm-4096[.]impl[.]of-cublas' "$folder/out/bench-operators.txt"
grep -q '"gpu": "Emulated 0"' "$folder/out/bench-operators.json"
grep -q '[.]unit[.]k2[.]impl ' "$folder/out/bench-operators.txt"
grep -qE '[.]gpt-124m[.]k2[.]impl[.]memory ' "$folder/out/bench-gpt.txt"
if grep -vE '^([|] (bits|[a-z]*check of)|bars:)' "$folder/out/bars.md" |
    grep -E 'not measured( [(|]|$)'; then
    cat "$folder/out/bars.md" >&2
    exit 1
fi
mkdir "$folder/all"
tar -C "$folder/all" -xzf "$folder/all.tar.gz"
cmp "$folder/all/bars.md" "$folder/out/bars.md"
grep -q '^all passed$' "$folder/all/summary.txt"
# Ours with one rank and with two, PyTorch's, what fits there.
grep -qE '^[|] attention ([|] 0[.][0-9]{3} ){4}([|] 0[.][12]00 ){3}[|]$' \
    "$folder/out/bars.md"
grep -q '[.]gpt-largest[.]k1[.]impl[.]blocks  *4[.]000' \
    "$folder/out/bench-largest.txt"

# Failures show in the summary and in the exit code.
SANITIZER_FINDS=3 runs --quick --ranks 1 --only sanitizer
wants 1 '^memcheck: FAILED \(86\)' '^racecheck: FAILED \(86\)' \
    '^something FAILED$'
# A tool that finds nothing at all shows nothing.
SANITIZER_BLIND=yes runs --quick --ranks 1 --only sanitizer
wants 1 '^memcheck: FAILED, it does not find what was planted' \
    '^[|] .*memcheck [|] clean [|] it does not find .* [|] not measured [|]$'
FSDP_EMULATED_FAULT=no-image runs --quick --ranks 1 --only manifest,trace,bench
wants 1 '^K = 1, a GPU a rank: NON-CONFORMANT' '^trace: FAILED' \
    '^bench-operators: FAILED' '^bench-gpt: FAILED' \
    '^[|] bits.* K = 1 .*[|] [*][*]no[*][*] [|]$' '^something FAILED$'
FSDP_EMULATED_FAULT=cublas-wrong LD_LIBRARY_PATH=$driver \
    runs --quick --ranks 1 --only operators
wants 1 '^bench-operators: FAILED'
grep -q 'gemm-4096: element 0 is .*, and cuBLAS says' \
    "$folder/out/bench-operators.txt"
# ... and leave the rest.
grep -q '[.]adamw[.]impl[.]of-copy ' "$folder/out/bench-operators.txt"
grep -q '[.]unit[.]k1[.]impl"' "$folder/out/bench-operators.json"

# What hangs; a manifest is judged as far as it came, and is not "met".
ends hangs
wants 1 '^bench-gpt: 1 results$' \
    '^PyTorch .*: was STOPPED, its time was over' \
    '^steps: left out, no time is left$' '^something FAILED$'
ends long
wants 1 '^K = 4, sharing 3 GPU\(s\): was STOPPED, its time was over' \
    '^[|] bits.* K = 4 .* [|] not measured [|]$'

out=$folder/out
said=$folder/out.said

# What ci/gpu-pack takes from a build runs elsewhere; here cmake has nothing to
# do. Libraries of this machine, and not those of the folder, it refuses.
ln -sf /bin/true "$folder/path/cmake"
for test in ops large comm; do
    ln -s /bin/true "$folder/build/tests/cuda_${test}_test_gpu"
done
status=0
"${script}-pack" --build "$folder/build" "$folder/pack" >"$said" 2>&1 ||
    status=$?
if [ "$status" != 1 ] || ! grep -q 'is not taken from' "$said"; then
    cat "$said" >&2
    exit 1
fi
LD_LIBRARY_PATH=$folder/pack/lib "${script}-pack" --build "$folder/build" \
    "$folder/pack" >"$said" 2>&1 || { cat "$said" >&2; exit 1; }
test -s "$folder/pack/tests/sanitizer_plant_gpu"
status=0
"$script" --build "$folder/pack" --out "$folder/out" --only trace \
    >"$said" 2>&1 || status=$?
wants 0 '^trace: [0-9]+ events$'
# A library that is nowhere is named, and nothing is run.
rm "$folder/pack/bin/fsdp-cts"
printf '#!/bin/sh\nexit 127\n' >"$folder/pack/bin/fsdp-cts"
chmod +x "$folder/pack/bin/fsdp-cts"
status=0
"$script" --build "$folder/pack" --out "$folder/out" >"$said" 2>&1 ||
    status=$?
wants 2 '^the build does not run here'

# No GPU; a folder that is no build; a part that is none.
FSDP_EMULATED_GPUS=0 runs --quick
wants 2 '^no GPU was found; nothing was run$'
status=0
"$script" --build "$folder/path" --out "$folder/out" >"$said" 2>&1 ||
    status=$?
wants 2 'not there; was the build configured'
status=0
"$script" --only everything --out "$folder/out" >"$said" 2>&1 ||
    status=$?
wants 64
echo ok

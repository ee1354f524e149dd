#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# With the flags of the build, which every kernel is compiled with, the
# assembler refuses registers that are spilled and an array in local memory, so
# that no kernel that was built has either. This shows that it does refuse.
# usage: resources_test.sh NVCC FLAG of the build ...
set -euo pipefail

nvcc=$1
shift
case " $* " in
*-Xptxas=*-Werror*) ;;
*)
    echo 'skipped: warnings are no errors here (FSDP_WERROR)'
    exit 77
    ;;
esac
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# assemble ARCH FLAG ...: in $folder/said what nvcc says of $folder/kernel.cu.
assemble() {
    local arch=$1
    shift
    "$nvcc" -std=c++17 -O2 -arch="sm_$arch" "$@" -cubin "$folder/kernel.cu" \
        -o "$folder/kernel.cubin" >"$folder/said" 2>&1
}

# refused ARCH WORDS FLAG ...: it is, in these words.
refused() {
    local arch=$1 words=$2
    shift 2
    if assemble "$arch" "$@"; then
        echo "sm_$arch: this was not refused:" >&2
        cat "$folder/kernel.cu" >&2
        exit 1
    fi
    if ! grep -q "error.*$words" "$folder/said"; then
        echo "sm_$arch: it was not refused for '$words':" >&2
        cat "$folder/kernel.cu" "$folder/said" >&2
        exit 1
    fi
}

for arch in 80 90; do
    # An array with an index that nobody knows.
    cat >"$folder/kernel.cu" <<'CODE'
__global__ void array(float *x, int n)
{
    float a[64];

    for (int i = 0; i < n; i++)
        a[(i * 7) % 64] = x[i];
    x[0] = a[n % 64];
}
CODE
    refused "$arch" 'Local memory used' "$@"

    # 64 numbers in the 32 registers that are left for each of 2048 threads.
    cat >"$folder/kernel.cu" <<'CODE'
__global__ void __launch_bounds__(1024, 2) spill(float *x, int n)
{
    float a[64];

#pragma unroll
    for (int i = 0; i < 64; i++)
        a[i] = x[i * n];
    for (int k = 0; k < n; k++)
#pragma unroll
        for (int i = 0; i < 64; i++)
            a[i] = a[i] * a[(i + 1) % 64] + a[(i * 7) % 64];
#pragma unroll
    for (int i = 0; i < 64; i++)
        x[i * n] = a[i];
}
CODE
    refused "$arch" 'Registers are spilled' "$@"

    # And what has neither is not.
    printf '__global__ void good(float *x, int n) { x[n] = x[0] + x[1]; }\n' \
        >"$folder/kernel.cu"
    assemble "$arch" "$@" || { cat "$folder/said" >&2; exit 1; }
done
echo 'spilled registers and arrays in local memory do not build, for sm_80' \
    'and sm_90'

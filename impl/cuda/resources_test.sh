#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What the assembler says of every kernel: no registers spilled, no stack, so
# no array in local memory either. usage: resources_test.sh NVCC INCLUDE
set -euo pipefail

nvcc=$1
include=$2
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# report FILE.cu ARCH: a line "KERNEL REGISTERS STACK SPILLED" for each kernel.
report() {
    "$nvcc" -std=c++17 -O2 --fmad=false -arch="sm_$2" -Xptxas -v -I "$here" \
        -I "$include" -c "$1" -o "$folder/object.o" >"$folder/said" 2>&1 ||
        { cat "$folder/said" >&2; exit 1; }
    awk '
        /Compiling entry function/ { split($0, part, "\047"); name = part[2] }
        /bytes stack frame/ {
            for (i = 2; i <= NF; i++) {
                if ($i == "bytes" && $(i + 1) == "stack") stack = $(i - 1)
                if ($i == "bytes" && $(i + 1) == "spill") spilled += $(i - 1)
            }
        }
        /Used [0-9]+ registers/ && name != "" {
            for (i = 2; i <= NF; i++)
                if ($i ~ /^registers/) print name, $(i - 1), stack + 0, spilled + 0
            name = ""
            stack = spilled = 0
        }' "$folder/said"
}

# It can fail: an array with an index that nobody knows is found.
cat >"$folder/bad.cu" <<'CODE'
__global__ void bad(float *x, int n)
{
    float a[64];

    for (int i = 0; i < n; i++)
        a[(i * 7) % 64] = x[i];
    x[0] = a[n % 64];
}
CODE
report "$folder/bad.cu" 90 >"$folder/bad"
if ! awk '$3 > 0 { found = 1 } END { exit !found }' "$folder/bad"; then
    echo 'the report does not show an array in local memory:' >&2
    cat "$folder/said" >&2
    exit 1
fi

kernels=0
failed=0
for arch in 80 90; do
    for file in "$here"/*.cu; do
        report "$file" "$arch" >"$folder/kernels"
        while read -r name registers stack spilled; do
            kernels=$((kernels + 1))
            if [ "$stack" != 0 ] || [ "$spilled" != 0 ]; then
                echo "sm_$arch $(basename "$file") $name: $registers" \
                    "registers, $stack bytes of stack, $spilled spilled" >&2
                failed=1
            fi
        done <"$folder/kernels"
    done
done
if [ "$kernels" -lt 60 ]; then
    echo "only $kernels kernels were seen" >&2
    exit 1
fi
echo "$kernels kernels, for sm_80 and sm_90: no stack, nothing spilled"
exit "$failed"

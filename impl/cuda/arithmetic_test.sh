#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What nvcc makes of the arithmetic, as PTX says it: every sum, product,
# quotient and root is rounded to nearest and keeps subnormals, a fused
# multiply-add stands only where the source has fma or fmaf, an approximate
# division only where it has __fdividef, and nothing is added by atomics.
# usage: arithmetic_test.sh NVCC INCLUDE [FLAG of the build ...]
set -euo pipefail

nvcc=$1
include=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# What the source asks for by name leaves that name behind it: fused
# multiply-adds, and quotients of an approximate division that are corrected.
cat >"$folder/marked.cuh" <<'CODE'
#include <cuda_runtime.h>
#include <math.h>
#ifdef __CUDA_ARCH__
static __device__ __forceinline__ float marked_fma(float a, float b, float c)
{
    float r;

    asm("fma.rn.f32 %0, %1, %2, %3; // fma" : "=f"(r) : "f"(a), "f"(b), "f"(c));
    return r;
}
static __device__ __forceinline__ double marked_fma(double a, double b,
                                                    double c)
{
    double r;

    asm("fma.rn.f64 %0, %1, %2, %3; // fma" : "=d"(r) : "d"(a), "d"(b), "d"(c));
    return r;
}
static __device__ __forceinline__ float marked_quotient(float a, float b)
{
    float r;

    asm("div.approx.f32 %0, %1, %2; // approximate" : "=f"(r) : "f"(a), "f"(b));
    return r;
}
#define fmaf(a, b, c) marked_fma((float)(a), (float)(b), (float)(c))
#define fma(a, b, c) marked_fma(a, b, c)
#define __fdividef(a, b) marked_quotient(a, b)
#endif
CODE

# ptx FILE.cu ARCH FLAG ...
ptx()
{
    local file=$1 arch=$2
    shift 2
    "$nvcc" -std=c++17 -O2 -arch="compute_$arch" -ptx "$@" -I "$here" \
        -I "$include" -include "$folder/marked.cuh" "$file" \
        -o "$folder/out.ptx" >"$folder/said" 2>&1 ||
        { cat "$folder/said" >&2; exit 1; }
}

# wrong FILE.ptx: the lines that are not as they should be, and then how many
# operations there were.
wrong()
{
    awk '
        { op = $1 ~ /^@/ ? $2 : $1; sub(/;$/, "", op) }
        op ~ /^(atom|red)\./ { print "atomic: " $0; next }
        op !~ /\.(f16|bf16|f32|f64|e4m3|e5m2|tf32)/ { next }
        op ~ /^(ld|st|mov|selp|setp|set|slct|shfl|neg|abs|min|max|copysign|testp)\./ {
            if (op ~ /\.(ftz|sat)/) print "flushes: " $0
            next
        }
        op ~ /^\./ { next } # a declaration
        { operations++ }
        op ~ /^(add|sub|mul|div|sqrt|rcp)\.rn\.(f32|f64)$/ { next }
        op ~ /^fma\.rn\.(f32|f64)$/ {
            if ($0 !~ /\/\/ fma/) print "contracted: " $0
            next
        }
        op == "div.approx.f32" && /\/\/ approximate/ { next }
        # Wider, narrower, from and to integers: narrower rounds.
        op ~ /^cvt\.(f64\.f32|rn\.f32\.f64|rn\.f(32|64)\.[su](8|16|32|64)|r[zn]i\.[su](8|16|32|64)\.f(32|64))$/ { next }
        { print "not IEEE: " $0 }
        END { print "operations " operations + 0 }' "$1"
}

# It can fail. plant WORD CODE FLAG ...: the code is called that.
plant()
{
    local word=$1
    printf '__global__ void bad(float *x, int n)\n{\n    %s\n}\n' "$2" \
        >"$folder/bad.cu"
    shift 2
    ptx "$folder/bad.cu" 90 "$@"
    wrong "$folder/out.ptx" >"$folder/found"
    if ! grep -q "^$word: " "$folder/found"; then
        echo "not found: $word in" >&2
        cat "$folder/bad.cu" "$folder/out.ptx" >&2
        exit 1
    fi
}
plant contracted 'x[0] = x[1] * x[2] + x[3];'
plant contracted 'x[0] = (float)((double)x[1] * (double)x[2] + (double)n);'
plant 'not IEEE' 'x[0] = x[1] * x[2];'
plant 'not IEEE' 'x[0] = x[1] + x[2];' --fmad=false -ftz=true
plant 'not IEEE' 'x[0] = x[1] / x[2];' --fmad=false -prec-div=false
plant 'not IEEE' 'x[0] = sqrtf(x[1]);' --fmad=false -prec-sqrt=false
plant 'not IEEE' 'x[0] = __expf(x[1]);' --fmad=false
plant 'not IEEE' 'x[0] = __fadd_rz(x[1], x[2]);' --fmad=false
plant 'not IEEE' 'x[0] = rsqrtf(x[1]);' --fmad=false
plant flushes 'x[0] = fabsf(x[1]);' --fmad=false -ftz=true
plant atomic 'atomicAdd(x, x[n]);' --fmad=false
plant atomic 'atomicMax((int *)x, n);' --fmad=false

# And what is right is not.
cat >"$folder/good.cu" <<'CODE'
__global__ void good(float *x, double *y, int n)
{
    x[0] = x[1] * x[2] + x[3] / sqrtf(x[4]);
    x[1] = fmaf(x[5], (float)n, -x[6]);
    y[0] = (double)x[7] * y[1] + fma(y[2], y[3], 1.0);
    x[2] = __fdividef(x[8], x[9]);
}
CODE
ptx "$folder/good.cu" 90 --fmad=false
wrong "$folder/out.ptx" >"$folder/found"
if [ "$(grep -cv '^operations ' "$folder/found" || true)" != 0 ]; then
    cat "$folder/found" >&2
    exit 1
fi

operations=0
failed=0
for arch in 80 90; do
    for file in "$here"/*.cu; do
        ptx "$file" "$arch" "$@"
        wrong "$folder/out.ptx" >"$folder/found"
        n=$(awk '/^operations / { print $2 }' "$folder/found")
        operations=$((operations + n))
        if [ "$(wc -l <"$folder/found")" != 1 ]; then
            echo "compute_$arch $(basename "$file"):" >&2
            sed '/^operations /d' "$folder/found" >&2
            failed=1
        fi
    done
done
if [ "$operations" -lt 5000 ]; then
    echo "only $operations operations were seen" >&2
    exit 1
fi
echo "$operations operations on floats, for compute_80 and compute_90:" \
    "all as IEEE 754 has them, no fusion but fma"
exit "$failed"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What the machine code of the products and of attention says: of each kernel
# for whole tiles the registers, the blocks that a multiprocessor holds at once,
# and of its innermost loops, how many instructions are multiply-adds of floats.
# The rest is what it costs to feed them. Fails if a share is below its floor,
# or if a main loop reads memory other than in vectors.
# usage: machine_code_test.sh NVCC INCLUDE; CUOBJDUMP names the disassembler
set -euo pipefail

nvcc=$1
include=$2
here=$(cd "$(dirname "$0")" && pwd)
disassembler=${CUOBJDUMP:-}
for candidate in "$(dirname "$nvcc")/cuobjdump" cuobjdump; do
    if [ -z "$disassembler" ] && command -v "$candidate" >/dev/null 2>&1; then
        disassembler=$candidate
    fi
done
if [ -z "$disassembler" ]; then
    echo 'skipped: there is no cuobjdump; CUOBJDUMP names one'
    exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# loops <SASS: of each innermost loop that has 200 multiply-adds or more
# "KERNEL INSTRUCTIONS FFMA LDS LDG VECTORS", the latter being loads of 16 bytes.
loops() {
    awk '
        function padded(hex) { return substr("0000000" hex, length(hex)) }
        function finish(   i, j, k, n, fma, lds, ldg, wide) {
            for (i = 1; i <= lines; i++) {
                if (!(i in target) || target[i] > address[i]) continue
                n = fma = lds = ldg = wide = 0
                for (j = i; j > 0 && address[j] >= target[i]; j--) {
                    if (j != i && j in target && target[j] <= address[j]) break
                    n++
                    fma += text[j] ~ /^FFMA/
                    lds += text[j] ~ /^LDS/
                    ldg += text[j] ~ /^LDG/
                    wide += text[j] ~ /^LDG.*[.]128/
                }
                if ((j == 0 || address[j] < target[i]) && fma >= 200)
                    print name, n, fma, lds, ldg, wide
            }
        }
        /Function : / {
            finish()
            name = $3
            lines = 0
            delete target
        }
        $1 ~ /^\/\*[0-9a-f]+\*\/$/ && NF > 2 {
            at = $1
            gsub(/[^0-9a-f]/, "", at)
            lines++
            address[lines] = padded(at)
            i = $2 ~ /^@/ ? 3 : 2
            text[lines] = $i
            if ($i ~ /^BRA/ && match($0, /0x[0-9a-f]+ ;/))
                target[lines] = padded(substr($0, RSTART + 2, RLENGTH - 4))
        }
        END { finish() }'
}

# resources <what the assembler says: "KERNEL REGISTERS SHARED" for each.
resources() {
    awk '
        /Compiling entry function/ { split($0, part, "\047"); name = part[2] }
        /Used [0-9]+ registers/ && name != "" {
            shared = 0
            for (i = 2; i <= NF; i++) {
                if ($i ~ /^registers/) registers = $(i - 1)
                if ($i == "bytes" && $(i + 1) ~ /^smem/) shared = $(i - 1)
            }
            print name, registers, shared
            name = ""
        }'
}

failed=0
loops_seen=0
printf '%-8s %-44s %4s %6s %6s %5s %5s %6s\n' arch kernel regs blocks \
    loop FFMA LDS share
for arch in 80 90; do
    for file in cuda_gemm cuda_attention cuda_attention_backward; do
        "$nvcc" -std=c++17 -O2 --fmad=false -arch="sm_$arch" -Xptxas -v \
            -I "$here" -I "$include" -cubin "$here/$file.cu" \
            -o "$folder/$file.cubin" >"$folder/said" 2>&1 ||
            { cat "$folder/said" >&2; exit 1; }
        resources <"$folder/said" >"$folder/resources"
        "$disassembler" -sass "$folder/$file.cubin" >"$folder/sass"
        loops <"$folder/sass" >"$folder/loops"
        # Kernels for whole tiles: their last argument is true.
        while read -r name n fma lds ldg wide; do
            read -r _ registers shared < <(
                grep -F "$name " "$folder/resources")
            # Of a name: rows and columns of threads, of elements of each.
            shape=$(sed -E 's/^.*tile_ofILi([0-9]+)ELi([0-9]+)ELi([0-9]+)ELi([0-9]+)E.*$/\1 \2 \3 \4/' <<<"$name")
            read -r down across r s <<<"$shape"
            threads=$((down * across))
            word=$(sed -E 's/^_Z[0-9]+([a-z_]+)I7tile.*$/\1/' <<<"$name")
            layout=$(sed -nE 's/^.*E(Lb[01]ELb[01])ELb1EEv.*$/\1/p' <<<"$name")
            blocks=$((65536 / ((registers + 7) / 8 * 8 * threads)))
            room=$(((arch == 90 ? 233472 : 167936) / (shared + 1024)))
            [ "$blocks" -lt "$room" ] || blocks=$room
            share=$((fma * 1000 / n))
            # Large tiles, those of attention, the flat and the small one.
            case "$r $s" in
            '16 8') floor=890 ;;
            '8 8' | '8 4') floor=820 ;;
            '6 6') floor=780 ;;
            *) floor=700 ;;
            esac
            printf 'sm_%-5s %-44s %4s %6s %6s %5s %5s %5s%%\n' "$arch" \
                "$word $((down * r))x$((across * s)) $layout" "$registers" \
                "$blocks" "$n" "$fma" "$lds" "$((share / 10)).$((share % 10))"
            loops_seen=$((loops_seen + 1))
            if [ "$share" -lt "$floor" ]; then
                echo "  its share is below $((floor / 10)) %" >&2
                failed=1
            fi
            if [ "$ldg" -ne "$wide" ]; then
                echo "  $((ldg - wide)) of its loads are not vectors" >&2
                failed=1
            fi
        done < <(grep -E 'ELb1EEv' "$folder/loops")
    done
done
if [ "$loops_seen" -lt 24 ]; then
    echo "only $loops_seen loops were seen" >&2
    exit 1
fi
exit "$failed"

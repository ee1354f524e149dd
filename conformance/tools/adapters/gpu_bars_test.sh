#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# gpu_bars_test.sh - the table of bars: what is met, what just so, what is not,
# what is no number, what was not measured; several folders; the exit code.
# usage: gpu_bars_test.sh GPU-BARS
set -euo pipefail

bars=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/a" "$folder/b"

# row TEXT: the row is there, to the letter behind the first column.
row()
{
    if ! grep -qF -- "$1" "$folder/table"; then
        echo "no '$1' in:" >&2
        cat "$folder/table" >&2
        exit 1
    fi
}

# makes STATUS FOLDER...
makes()
{
    local want=$1 status=0
    shift
    "$bars" "$@" >"$folder/table" || status=$?
    if [ "$status" != "$want" ]; then
        echo "exit code $status, not $want" >&2
        cat "$folder/table" >&2
        exit 1
    fi
}

good()
{
    cat <<'END'
gpu.gemm-4096.impl          40000.000 GFLOP/s     0.900 of cuBLAS
gpu.gemm-4096.impl.of-cublas    0.850 ratio
gpu.gemm-8192.impl.of-cublas    0.851 ratio
gpu.gelu.impl.of-copy           0.950 ratio
gpu.mse.impl.of-copy            0.800 ratio
gpu.unit.k1.impl               69.999 us
gpu.unit.k1.impl.calls          2.000 calls
gpu.gpt-124m.k1.impl        45000.000 tokens/s
gpu.gpt-124m.k1.impl.memory-off 1.000 MiB
END
}
good >"$folder/a/bench-operators.txt"
echo 'step.gpt-124m.fsdp2.k1.pytorch 50000.0 tokens/s, 3 MiB, loss 5 -> 3' \
    >"$folder/a/pytorch-k1.txt"
cat >"$folder/a/verdicts.txt" <<'END'
k1 yes INCOMPLETE (a selection; all of it passed)
k2 - was STOPPED
memcheck no exit code 86
END

makes 1 "$folder/a"
row 'K = 1 | no case differs | INCOMPLETE (a selection; all of it passed) | yes |'
row 'K = 2 | no case differs | was STOPPED | not measured |'
row 'K = 3 | no case differs |  | not measured |'
row 'at least 0.85 | 0.85 (gpu.gemm-4096.impl.of-cublas) | yes |'
row '| 0.8 (gpu.mse.impl.of-copy, the worst of 2) | yes |'
row '| under 70 | 69.999 (gpu.unit.k1.impl) | yes |'
row '| at least 0.9 | 0.900 (45000.000 of 50000.0) | yes |'
row '| at most 1 | 1 (gpu.gpt-124m.k1.impl.memory-off) | yes |'
row 'memcheck | clean | exit code 86 | **no** |'
row 'bars: 7 met, 1 not met, '

# Another run has the rest, and what it measured anew counts.
echo 'k2 yes INCOMPLETE; all of it passed' >"$folder/b/verdicts.txt"
echo 'memcheck yes clean' >>"$folder/b/verdicts.txt"
echo 'k1 - was STOPPED' >>"$folder/b/verdicts.txt"
makes 2 "$folder/a" "$folder/b"
row 'memcheck | clean | clean | yes |'
row 'bars: 9 met, 0 not met, '

# A little less; a bound that is to be below; and no numbers.
# wrong FROM TO ROW
wrong()
{
    good | sed "s/$1/$2/" >"$folder/a/bench-operators.txt"
    makes 1 "$folder/a" "$folder/b"
    row "$3"
}
wrong '0[.]850 ratio' '0.849 ratio' '0.849 (gpu.gemm-4096.impl.of-cublas) | **no**'
wrong '69[.]999' '70.000' '70 (gpu.unit.k1.impl) | **no**'
wrong '69[.]999' '-nan' '-nan (gpu.unit.k1.impl) | **no**'
wrong '0[.]800' 'nan' 'nan (gpu.mse.impl.of-copy, the worst of 2) | **no**'
wrong '0[.]950' 'inf' 'inf (gpu.gelu.impl.of-copy, the worst of 2) | **no**'
wrong '45000[.]000' 'nan' 'nan of 50000.0 | **no**'
wrong '45000[.]000' '44999.0' '0.900 (44999.0 of 50000.0) | **no**'
wrong '1[.]000 MiB' 'nan MiB' 'nan (gpu.gpt-124m.k1.impl.memory-off) | **no**'
good >"$folder/a/bench-operators.txt"
echo 'step.gpt-124m.fsdp2.k1.pytorch 0.0 tokens/s' >"$folder/a/pytorch-k1.txt"
makes 1 "$folder/a" "$folder/b"
row '45000.000 of 0.0 | **no** |'
status=0
"$bars" "$folder/none" >"$folder/table" 2>&1 || status=$?
[ "$status" = 64 ]
echo ok

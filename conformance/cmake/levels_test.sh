#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# levels_test.sh - what is built runs on any x86-64: instructions of newer
# processors are in the objects of a level, which is chosen at run time, and
# nowhere else; and what such an object defines says so in its name, so that
# nobody else can be linked with it.
#
# usage: levels_test.sh BUILD-FOLDER
set -euo pipefail

[ "$(uname -m)" = x86_64 ] || {
    echo 'skipped: the processor is no x86-64'
    exit 77
}
command -v objdump >/dev/null || {
    echo 'skipped: there is no objdump'
    exit 77
}
cd "$1"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Of those that there are, since a folder may keep what is no longer built. The
# emulation of CUDA runs where it is built, and is not installed.
sed -n 's/^build \(\(conformance\|impl\|ref\)[^ ]*\.c\.o\): .*/\1/p' build.ninja |
    grep -v ^impl/cuda/ | while read -r object; do
    [ ! -e "$object" ] || echo "$object"
done >"$scratch/objects"
levels='fsdp-(ref-fma|host-avx2|host-avx512)\.dir/|world_half_avx2\.c\.o$'
grep -E "$levels" "$scratch/objects" >"$scratch/level"
grep -Ev "$levels" "$scratch/objects" >"$scratch/other"

# newer LIST: the objects with instructions that are encoded as those of AVX are,
# whose names begin with v or k. verr and verw are as old as the processor.
newer()
{
    xargs objdump -d --no-show-raw-insn <"$1" | awk '
        / file format / { object = $1 }
        $2 ~ /^[vk][a-z0-9]+$/ && $2 !~ /^ver[rw]$/ { count[object]++ }
        END { for (object in count) print object, count[object] }'
}

status=0
newer "$scratch/other" >"$scratch/found"
[ ! -s "$scratch/found" ] || {
    echo 'not of a level, but with instructions that not every x86-64 has:'
    cat "$scratch/found"
    status=1
}
# That they are found at all.
newer "$scratch/level" >"$scratch/found"
grep -q fsdp-ref-fma "$scratch/found" || {
    echo 'no object of the level fma has an instruction of it'
    status=1
}
xargs nm -A --defined-only --extern-only <"$scratch/level" |
    grep -Ev '_(fma|avx2|avx512)$' >"$scratch/found" || true
[ ! -s "$scratch/found" ] || {
    echo 'defined by a level, without the name of the level at its end:'
    cat "$scratch/found"
    status=1
}
echo "$(wc -l <"$scratch/level") objects of levels, $(wc -l <"$scratch/other") others"
exit "$status"

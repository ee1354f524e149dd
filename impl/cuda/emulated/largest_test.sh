#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The largest gpt that fits, on emulated GPUs of several memories: what it asks
# for is within the memory, and one block more would not be; two ranks have
# room for more; where nothing fits, or nobody says how much there is, it is
# left out.
# usage: largest_test.sh FSDP-CTS PLUGIN DRIVER-FOLDER
set -euo pipefail

cts=$1
plugin=$2
driver=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export FSDP_EMULATED_PLUGIN=$plugin FSDP_CUDA_STAGING=4096
export FSDP_EMULATED_GPUS=2 LD_LIBRARY_PATH=$driver

# finds MEMORY RANKS: leaves $blocks ("" where there are none), $plan in bytes.
finds()
{
    FSDP_EMULATED_MEMORY=$1 timeout 300 "$cts" bench gpu --small \
        --engine "$plugin" --samples 1 --ranks "$2" --filter gpt-largest \
        >"$folder/out" 2>"$folder/err" ||
        { cat "$folder/out" "$folder/err" >&2; exit 1; }
    blocks=$(awk '$1 ~ /[.]blocks$/ { print int($2) }' "$folder/out")
    plan=$(awk '$1 ~ /[.]memory-plan$/ { print $2 * 1048576 }' "$folder/out")
}

fail()
{
    echo "$*" >&2
    cat "$folder/out" "$folder/err" >&2
    exit 1
}

# What two and three blocks take, and so what four would.
finds 1100000 1
[ "$blocks" = 2 ] || fail "'$blocks' blocks in 1100000 bytes, not 2"
two=$plan
finds 1300000 1
[ "$blocks" = 3 ] || fail "'$blocks' blocks in 1300000 bytes, not 3"
awk -v two="$two" -v three="$plan" 'BEGIN {
    exit !(three <= 1300000 && three + (three - two) > 1300000) }' ||
    fail "3 blocks are not all that fits: 2 take $two bytes, 3 take $plan"
finds 1300000 2
[ "$blocks" = 4 ] || fail "'$blocks' blocks with two ranks, not 4"
finds 720000 1
[ "$blocks" = 1 ] || fail "'$blocks' blocks in 720000 bytes, not 1"
finds 600000 1
[ -z "$blocks" ] || fail "$blocks blocks in 600000 bytes"
grep -q 'gpt-largest with 1 rank(s): not even one block fits' "$folder/err" ||
    fail 'it is not said that nothing fits'
FSDP_EMULATED_GPUS=1
finds 100000000 2 # what CUDA IPC shares comes in blocks of 2 MiB
[ -z "$blocks" ] || fail "$blocks blocks for ranks that share a GPU"
grep -q 'the driver does not say' "$folder/err" ||
    fail 'it is not said why it is left out'
echo ok

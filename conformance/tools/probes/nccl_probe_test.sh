#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# nccl_probe_test.sh - NCCL's profiler plug-in under a program that calls it as
# NCCL does. No NCCL, no GPU: testing/nccl_driver.c.
#
# usage: nccl_probe_test.sh FSDP-CTS PROBE-FOLDER PROGRAM-FOLDER [SANITIZER]
set -uo pipefail
# shellcheck source=conformance/tools/probes/probe_testing.sh
. "$(dirname "$0")/probe_testing.sh"

# drive WHAT [ENVIRONMENT...]: leaves its log in WHAT.
drive()
{
    local what=$1

    shift
    env FSDP_PROBE_LOG="$folder/$what" "$@" "$programs/nccl_driver" \
        "$probes/fsdp-probe-nccl.so" "$what" >out 2>err
    code=$?
}
ends() # WHAT CODE
{
    result "$1" "$([ "$code" -eq "$2" ] || echo "exit $code: $(cat err)")"
}
also=(--also all-reduce:1:3)
units=(--units 1000,600 --steps 3 --dtype bf16 --reduce-dtype f32)

exported=$(nm -D --defined-only "$probes/fsdp-probe-nccl.so" |
    awk '{ print $3 }' | sort | tr '\n' ' ')
result 'it exports the interface alone' "$(
    [ "$exported" = 'ncclProfiler_v4 ncclProfiler_v5 ' ] || echo "$exported")"

# Rank 1 of 4, by torchrun's variables; the others are made of its log.
drive train RANK=1 WORLD_SIZE=4
ends 'the driver trains' 0
log=$(echo train/nccl-1-*.jsonl)
judge 'without the other ranks' 2 'nccl rank 0: no log' train \
    "${units[@]}" "${also[@]}"
for rank in 0 2 3; do
    sed -E "s/\"rank\":1/\"rank\":$rank/; s/\"pid\":[0-9]+/\"pid\":$rank/" \
        "$log" >"train/nccl-$rank.jsonl"
done
judge 'with them' 0 'AS EXPECTED' train "${units[@]}" "${also[@]}"
judge 'another unit' 1 'expected' train --units 1000,604 --steps 3 \
    --dtype bf16 --reduce-dtype f32 "${also[@]}"
judge 'another type' 1 '6 calls, 0 expected' train --units 1000,600 --steps 3 \
    "${also[@]}"
result 'in place is found by address' "$(
    grep -q '"type":"launch","of":0,.*"in_place":true' "$log" &&
        grep -q '"kind":"reduce-scatter".*"in_place":false' "$log" ||
        sed -n 1,8p "$log")"

drive disorder
ends 'out of order' 0
judge 'calls stay in order' 0 'all-reduce' disorder
result 'each launch is of its call' "$(
    [ "$(grep -c '"type":"launch"' disorder/*)" -eq 16 ] || cat disorder/*)"
drive threads
judge 'eight threads' 0 '4000' threads
result 'numbers without a gap' "$(
    sed -n 's/.*"collective","seq":\([0-9]*\),.*/\1/p' threads/* >numbers
    seq 0 3999 | cmp - numbers 2>&1)"
drive graph
judge 'a graph: each launch counts' 0 '           5 ' graph
drive messages
judge 'messages, and what is unknown' 0 'send' messages
judge 'that is a call of its own' 0 'other' messages
drive version4 RANK=1
judge 'version 4' 0 'profiler v4' version4
result 'its calls are in place' "$(
    [ "$(grep -c '"in_place":true' version4/*)" -eq 3 ] || cat version4/*)"
drive shared
judge 'two ranks in a process are not judged' 2 'share the process' shared \
    "${units[@]}"
drive child
judge "a child leaves the parent's log alone" 0 'no collectives' child
drive die RANK=1 WORLD_SIZE=4
ends 'a program that is killed' 137
judge 'is read up to there' 2 'nccl rank 1: no end' die "${units[@]}" \
    "${also[@]}"

FSDP_PROBE_LOG=/proc/nowhere "$programs/nccl_driver" \
    "$probes/fsdp-probe-nccl.so" train 2>err
code=$?
ends 'nowhere to write: the program goes on' 0
result 'and says so once' "$([ "$(wc -l <err)" -eq 1 ] &&
    grep -q '/proc/nowhere' err || cat err)"
FSDP_PROBE_LOG=/dev/full "$programs/nccl_driver" \
    "$probes/fsdp-probe-nccl.so" train 2>err
code=$?
ends 'a full disk: the program goes on' 0
result 'and says so once, too' "$([ "$(wc -l <err)" -eq 1 ] &&
    grep -q 'No space left' err || cat err)"
"$programs/nccl_driver" "$probes/fsdp-probe-nccl.so" train 2>err
code=$?
ends 'no folder named' 0
result 'that is said as well' "$(grep -q 'FSDP_PROBE_LOG is not set' err ||
    cat err)"

finish 27

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# run --trace on the emulated GPU: the collectives that the host's trace has,
# and on each stream of each rank one event behind the other, at times that
# the stream's own events took.
# usage: emulated_trace_test.sh FSDP-CTS PLUGIN
set -euo pipefail

cts=$1
plugin=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export FSDP_CUDA_STAGING=4096
case=gpt.tiny.natural.hybrid-shard.k4r2.flat.layer.rank.ss.sgd.pf1.pb1.rif1

for engine in impl "$plugin"; do
    name=$(basename "$engine" .so)
    timeout 200 "$cts" run --engine "$engine" --case "$case" --timeout 120 \
        --records "$folder/records-$name" --trace "$folder/$name.json" \
        --quiet --partial-ok >"$folder/said" 2>&1 ||
        { cat "$folder/said" >&2; exit 1; }
    # How often each thing was done on each named track of each rank.
    awk -F'"' '
        /"ph":"M".*thread_name/ {
            split($0, part, /"pid":|,"tid":|,"args"/)
            track[part[2] " " part[3]] = $(NF - 1)
        }
        /"ph":"X"/ {
            split($0, part, /"pid":|,"tid":|,"ts":/)
            print part[2], track[part[2] " " part[3]], $8
        }' "$folder/$name.json" | sort | uniq -c >"$folder/$name.counts"
done
if ! cmp "$folder/impl.counts" "$folder/$(basename "$plugin" .so).counts"; then
    echo 'the host and the GPU do different things' >&2
    diff "$folder/impl.counts" "$folder/$(basename "$plugin" .so).counts" >&2
    exit 1
fi
awk '
    /"ph":"X"/ {
        split($0, part, /"tid":|,"ts":|,"dur":|,"args"/)
        split($0, who, /"pid":|,"tid":/)
        key = who[2] " " part[2]
        events++
        took += part[4] > 0
        if (part[3] < 1 || part[3] < end[key] - 1.5) {
            print "begins before the one before it has ended: " $0
            wrong++
        }
        end[key] = part[3] + part[4]
    }
    END {
        print events " events, " wrong + 0 " out of order"
        exit !(events > 4000 && took > events / 2 && wrong == 0)
    }' "$folder/$(basename "$plugin" .so).json"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The race detector on the CUDA device: an engine that forgets a wait there is
# found, whatever the streams did meanwhile, and the engine itself is not.
# usage: emulated_races_test.sh FSDP-CTS PLUGIN
set -euo pipefail

cts=$1
plugin=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export FSDP_CUDA_STAGING=4096
cases=mlp.seed.natural.full-shard.k4.flat.layer.rank.s.sgd.steps40
cases+=,gpt.tiny.natural.hybrid-shard.k4r2.flat.layer.rank.ss.sgd.pf1.pb1.rif1

# outcome NAME [OPTION...]: what the report says of races, sorted.
outcome()
{
    local name=$1
    shift
    timeout 200 "$cts" run --engine "$plugin" --case "$cases" --partial-ok \
        --timeout 120 --requirement stream.no-race --quiet \
        --records "$folder/records-$name" --report "$folder/$name.jsonl" "$@" \
        >"$folder/$name.said" 2>&1 || true
    awk -F'"' '/"type":"item"/ && /"stream.no-race"/ {
        for (i = 1; i < NF; i++)
            if ($i == "outcome") print $(i + 2)
    }' "$folder/$name.jsonl" | sort | uniq -c | awk '{ print $2 ":" $1 }'
}

said=$(outcome good)
if [ "$said" != pass:2 ]; then
    echo "no mutant: '$said', not pass:2" >&2
    cat "$folder/good.said" >&2
    exit 1
fi
for mutant in no-wait-all-gather-compute no-wait-compute-reduce-scatter \
    no-wait-reduce-optimizer no-wait-dead-reuse no-wait-communicator \
    no-wait-reduce-scatter-all-reduce; do
    said=$(outcome "$mutant" --mutant "$mutant")
    case $said in
    *fail:*) echo "$mutant: $said" ;;
    *)
        echo "$mutant: '$said', nothing was found" >&2
        cat "$folder/$mutant.said" >&2
        exit 1
        ;;
    esac
done

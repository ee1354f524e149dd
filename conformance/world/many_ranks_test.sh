#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# many_ranks_test.sh - worlds of more ranks than the manifest has, up to the
# most: more than a model has rows, and so many that a rank's few samples may
# all be stopped by a ReLU. Both engines are right there, too; and under fold
# tree 16, 32 and 64 ranks have one curve. One world is a large one, whose cases
# are those of large_worlds.txt.
#
# usage: many_ranks_test.sh FSDP-CTS INCLUDE-FOLDER
set -uo pipefail

# shellcheck source=conformance/cli/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cli/checks.sh"
cd "$folder" || exit 1

cases()
{
    local k=$1
    if [ "$k" -gt 64 ]; then
        echo "mlp.odd.natural.hybrid-shard-zero2.k${k}r2.flat.layer.ring.s.sgd"
        return
    fi
    echo "mlp.wide.natural.full-shard.k$k.flat.block.ring.nns.momentum.wd0.01"
    echo "mlp.empty.natural.full-shard.k$k.flat.block.rank.nns.adamw.again"
    if [ $((64 % k)) -eq 0 ]; then
        echo "mlp.odd.natural.full-shard.k$k.per-parameter.layer.tree.ns.adamw"
        echo "mlp.odd.natural.hybrid-shard.k${k}r4.flat.pair.tree.s.momentum"
    fi
}

for k in 9 16 31 32 64 96; do
    mapfile -t list < <(cases "$k")
    "$cts" run --engine ref,impl --partial-ok --ranks "$k" \
        --case "$(IFS=,; echo "${list[*]}")" >"out.$k" 2>err
    got=$?
    result "$k ranks" "$(
        [ "$got" -eq 0 ] || echo "exit code $got"
        grep -m3 -A4 '^fail' "out.$k"
        grep -c "a selection of ${#list[@]} of .* all of it passed" \
            "out.$k" | grep -qx 2 || grep -m2 '^INCOMPLETE' "out.$k"
    )"
done

# The final losses of the cases under fold tree, which are folded in one order
# over 64 grains whoever has them.
for k in 16 32 64; do
    awk '$NF ~ /^mlp\.odd\..*\.tree\./ {split($NF, id, "."); print id[4], $1}' \
        "out.$k" >"curve.$k"
done
result 'one curve under fold tree' "$(
    [ "$(wc -l <curve.16)" -eq 4 ] || cat curve.16
    cmp curve.16 curve.32
    cmp curve.16 curve.64
)"

"$cts" run --engine ref --ranks 513 >out 2>err
got=$?
result 'more ranks than a world can have' "$(
    [ "$got" -eq 64 ] || echo "exit code $got"
    grep -q '513.*512, which is what a world has room for' err || cat err
)"

finish 8

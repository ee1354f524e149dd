#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# graph_test.sh - random graphs in PyTorch. Without sharding they compute what
# the suite's own compute, within its bounds; with it they are played to the
# end; and an adapter whose graphs are wrong is found. Skips (77) where Python
# has no torch: FSDP_PYTHON names one that has.
#
# usage: graph_test.sh FSDP-CTS
set -uo pipefail

# shellcheck source=conformance/tools/adapters/adapter_testing.sh
. "$(dirname "${BASH_SOURCE[0]}")/adapter_testing.sh"
needs_engine pytorch_fsdp2

cat >"$folder/wrong.py" <<'END'
"""The plain adapter with graphs that are wrong in one way."""
import sys

import adapter_graph
import pytorch_plain

real = adapter_graph.GraphModel.__init__


def init(graph, case, *args, **kwargs):
    if how == "nothing-idle":
        case.json["graph"]["idle"] = [0] * len(case.parameters)
    elif how == "all-have-a-backward":
        case.json["graph"]["without_backward"] = []
    real(graph, case, *args, **kwargs)
    if how == "evaluates-as-it-trains":
        graph.sequences["eval"] = graph.sequences["train"]
    elif how == "last-call-is-lost":
        points, windows = graph.sequences["train"]
        leaf = [i for i, (_, m) in enumerate(points)
                if graph.kinds[m] not in ("Graph", "Block", "Head")]
        graph.sequences["train"] = [
            p for i, p in enumerate(points) if i not in leaf[-2:]], windows


how = sys.argv.pop(1)
adapter_graph.GraphModel.__init__ = init
pytorch_plain.main(pytorch_plain.Plain())
END
export PYTHONPATH=$here

# Of generator 3 half of the seeds have units that no adapter claims.
play() # ADAPTER SEEDS OPTION...: its exit code
{
    "$cts" run --adapter "$python $1" --workload graph --seeds "$2" \
        --drawn-by 2 --partial-ok --quiet --report "$folder/report" "${@:3}" \
        >"$folder/out" 2>&1
}

passing() # REQUIREMENT: of how many cases
{
    grep -c "^{\"type\":\"item\",\"requirement\":\"$1\".*\"outcome\":\"pass\"" \
        "$folder/report"
}

play "$here/pytorch_plain.py" 600 --ranks 1
code=$?
why=
[ $code -eq 0 ] || why="exit $code: $(tail -5 "$folder/out")"
[ -z "$why" ] && [ "$(passing grad.bound)" -lt 8 ] &&
    why="only $(passing grad.bound) were asked for gradients"
result 'graphs compute what the suite computes' "$why"

for row in nothing-idle:reduce. all-have-a-backward:grad.bound \
    evaluates-as-it-trains:eval. last-call-is-lost:gather.unsharded-values; do
    play "$folder/wrong.py ${row%:*}" 600 --ranks 1
    why=
    outcomes fail "$folder/report" | grep -q "^${row#*:}" ||
        why="fails: $(failing "$folder/report"); $(tail -3 "$folder/out")"
    result "${row%:*} is found" "$why"
done

finish 5

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# bench_test.sh - `fsdp-cts bench` measures what it is asked for, writes it in
# the form of docs/performance.md, and refuses what it does not know. What it
# measures is nobody's business here: a machine that runs tests is busy.
#
# usage: bench_test.sh FSDP-CTS [INCLUDE-FOLDER]
# Exits 77 if there is no python3 to read JSON with.
set -uo pipefail

# shellcheck source=conformance/cli/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../cli/checks.sh"

needs python3

# check JSON SAMPLES NAME...: the document's form, and exactly these results.
check()
{
    python3 - "$@" <<'END'
import json, re, sys

path, samples, wanted = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
with open(path, encoding="utf-8") as f:
    d = json.load(f)
assert list(d) == ["format", "version", "commit", "date", "hardware",
                   "results"], list(d)
assert d["format"] == "fsdp-bench" and d["version"] == 1
assert d["commit"] == "a commit", d["commit"]
assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", d["date"]), d["date"]
h = d["hardware"]
assert list(h) == ["cpu", "cores", "memory_bytes", "gpu"], h
assert h["cpu"] and h["cores"] >= 1 and h["memory_bytes"] > 1 << 20
assert h["gpu"] is None
names = [r["name"] for r in d["results"]]
assert names == wanted, names
for r in d["results"]:
    assert list(r) == ["name", "unit", "better", "median", "p10", "p90",
                       "samples"], r
    assert re.fullmatch(r"[a-z0-9.-]+", r["name"]), r["name"]
    n = 1 if r["name"].endswith(".memory") else samples
    assert len(r["samples"]) == n, r
    share = r["unit"] == "share"
    lower = r["unit"] in ("us", "MiB", "calls")
    if share:
        lower = r["name"].split(".")[-1] not in ("attention", "gemm")
        assert r["p90"] <= 1, r
    assert r["better"] == ("lower" if lower else "higher"), r
    assert r["p10"] >= 0 if share else r["p10"] > 0, r
    assert r["p10"] <= r["median"] <= r["p90"], r
    assert min(r["samples"]) <= r["median"] <= max(r["samples"]), r
# Five shares are all of a step; what is exposed is some of what communicates.
of = {r["name"]: r["samples"] for r in d["results"] if r["unit"] == "share"}
for step in {name.rsplit(".", 1)[0] for name in of}:
    s = {what: of[f"{step}.{what}"] for what in
         ("attention", "gemm", "rest", "exposed", "idle", "communication")}
    for i in range(samples):
        parts = sum(v[i] for k, v in s.items() if k != "communication")
        assert abs(parts - 1) < 1e-5, (step, parts)
        assert s["exposed"][i] <= s["communication"][i] + 1e-6, (step, s)
        assert s["gemm"][i] > 0 and s["rest"][i] > 0, (step, s)
        assert (s["attention"][i] > 0) == ("gpt" in step), (step, s)
        assert (s["communication"][i] > 0) == (".k1." not in step), (step, s)
END
}

# measures WHAT SAMPLES NAMES ARGUMENT...
measures()
{
    local what=$1 samples=$2 names=$3 why=''
    shift 3
    rm -f "$folder/json"
    # shellcheck disable=SC2086
    if ! timeout 300 "$cts" bench "$@" --samples "$samples" \
        --commit 'a commit' --json "$folder/json" >"$folder/out" \
        2>"$folder/err"; then
        why="exit code not 0: $(head -c 300 "$folder/err")"
    elif grep -qv '^bench: [0-9]* measured, ' "$folder/err"; then
        why="on stderr, which is no terminal: $(head -c 300 "$folder/err")"
    elif ! check "$folder/json" "$samples" $names 2>"$folder/why"; then
        why=$(tail -n 1 "$folder/why")
    elif [ "$(wc -l <"$folder/out")" -ne "$(wc -w <<<"$names")" ]; then
        why="not a row a result: $(head -c 300 "$folder/out")"
    fi
    result "$what" "$why"
}

refuses() # WHAT TEXT ARGUMENT...
{
    local what=$1 text=$2 why='' got
    shift 2
    timeout 60 "$cts" bench "$@" >"$folder/out" 2>"$folder/err"
    got=$?
    if [ "$got" -ne 64 ]; then
        why="exit code $got"
    elif ! grep -qF -- "$text" "$folder/err"; then
        why="'$text' is not in: $(cat "$folder/err")"
    fi
    result "refuses $what" "$why"
}

step=step.mlp-wide
measures 'steps' 3 "$step.full-shard.k1.impl $step.no-engine.k1.impl
    $step.full-shard.k1.impl.memory $step.full-shard.k2.impl
    $step.no-engine.k2.impl $step.full-shard.k2.impl.scaling
    $step.full-shard.k2.impl.memory $step.full-shard.k2.impl.bf16" \
    steps --engine impl --filter "$step"
measures 'steps of an engine that brings no stream' 2 \
    "$step.full-shard.k2.ref $step.full-shard.k2.ref.memory
    $step.full-shard.k2.ref.bf16" \
    steps --engine ref --ranks 2 --alone --filter "$step"
measures 'steps with SGD' 2 \
    "$step.full-shard.k1.impl.sgd $step.no-engine.k1.impl.sgd
    $step.full-shard.k1.impl.sgd.memory" \
    steps --engine impl --ranks 1 --sgd --filter "$step"
measures 'what a unit costs' 2 \
    'overhead.unit.k2.strict.impl overhead.unit.k2.impl' \
    steps --engine impl --ranks 2 --filter overhead
measures 'collectives' 2 \
    'collective.reduce-scatter.ring.4k.k3' \
    collectives --ranks 1,3 --filter reduce-scatter.ring.4k.
measures 'operators' 2 'operator.fill.impl.portable' \
    operators --filter operator.fill.impl.portable
shares() # NAME: its results
{
    local what
    for what in attention gemm rest exposed idle communication step; do
        echo "$1.share.$what"
    done
}
measures 'shares' 3 "$(shares step.gpt-small.full-shard.k1.impl)
    $(shares step.gpt-small.full-shard.k2.impl)" \
    shares --engine impl --filter gpt-small
measures 'shares of an engine that brings no stream' 2 \
    "$(shares "$step.full-shard.k2.ref")" \
    shares --engine ref --ranks 2 --filter "$step"
measures 'nothing of GPUs, of an engine that has none' 2 '' \
    gpu --engine impl
measures 'nothing that is not asked for' 2 '' --filter no-such-result

# A cluster that was measured is one that `plan` reads. On a machine that is too
# busy to measure one it says so, and writes nothing: then it is tried again,
# with more samples.
cluster=$folder/cluster.json
for samples in 9 25 75 225; do
    timeout 120 "$cts" bench cluster --engine impl --ranks 2 \
        --samples "$samples" --filter cluster.mlp-wide --cluster "$cluster" \
        >"$folder/out" 2>&1 && break
    [ ! -e "$cluster" ] && grep -q 'too busy' "$folder/out" || break
done
result 'a cluster is measured' "$(
    [ "$(grep -c 'step.impl.* us' "$folder/out")" -eq 2 ] ||
        cat "$folder/out"
    "$cts" plan mlp --ranks 2 --strategy full-shard --cluster "$cluster" \
        >"$folder/planned" 2>&1
    grep -q '^full-shard .*%$' "$folder/planned" ||
        cat "$cluster" "$folder/planned")"
timeout 120 "$cts" bench cluster --engine ref --ranks 1 --samples 3 \
    --filter cluster.mlp-wide --cluster "$folder/no/cluster" \
    >"$folder/out" 2>"$folder/err"
result 'a cluster that cannot be written' "$([ $? -eq 1 ] &&
    grep -q 'the cluster cannot be written' "$folder/err" ||
    cat "$folder/out" "$folder/err")"

refuses 'an unknown part' "unknown part 'everything': operators, " everything
refuses 'an unknown option' "'--fast'" --fast 1
refuses 'an option without its value' "'--json'" --json
refuses 'no samples' "--samples '0': must be a number" --samples 0
refuses 'too many ranks' "--ranks '65': must be up to 8 numbers" --ranks 1,65
first=$(dirname "$cts")/../lib/first.so
if [ -e "$first" ]; then
    timeout 60 "$cts" bench steps --engine "$first" --ranks 1 \
        --filter "$step" >"$folder/out" 2>"$folder/err"
    result 'steps of an engine that knows SGD alone' "$([ $? -eq 1 ] &&
        grep -qF 'does not claim adamw' "$folder/err" &&
        grep -qF 'with --sgd they are' "$folder/err" || cat "$folder/err")"
    measures 'which are measured with SGD' 2 \
        "$step.full-shard.k2.first.sgd $step.full-shard.k2.first.sgd.memory" \
        steps --engine "$first" --ranks 2 --alone --sgd --filter "$step"
fi
if timeout 60 "$cts" bench --engine unsharded >"$folder/out" 2>"$folder/err"
then
    result 'an engine in one process' 'was measured'
else
    result 'an engine in one process is refused' \
        "$(grep -F 'nothing to compare' "$folder/err" >/dev/null ||
            cat "$folder/err")"
fi

finish 1

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# saved_test.sh - what an implementation saves in its own form comes back, and
# one that saves or loads something else is found by the requirement that says
# so, and by no other. Skips (77) where Python has it not: FSDP_PYTHON names one
# that has.
#
# usage: saved_test.sh FSDP-CTS ENGINE [--bad [KEEP]]
# ENGINE: pytorch_fsdp2, pytorch_fsdp1, fairscale_fsdp or deepspeed_zero3
# --bad: what bad_input.txt and other_releases.txt have of that engine; KEEP:
# where the records go
set -uo pipefail

# shellcheck source=conformance/tools/adapters/adapter_testing.sh
. "$(dirname "${BASH_SOURCE[0]}")/adapter_testing.sh"
engine=$2

# Each fault in a case of its own, so that PyTorch is imported once for all; and
# what fails as it is (docs/results.md).
begin=mlp.odd.natural.full-shard
case $engine in
pytorch_fsdp2)
    known=nothing
    cases=("$begin.k4.per-parameter.pair.rank.s.adamw.resume.rec4"
        "$begin.k4.per-parameter.pair.rank.s.adamw.resume-full.rec4"
        "$begin.k3.per-parameter.pair.rank.s.adamw.resume-full.frozen-alternate.rec4")
    ;;
pytorch_fsdp1)
    known='memory.rest-after-step run.leaves-nothing'
    cases=("$begin.k3.flat.layer.rank.s.adamw.resume.rec4"
        "$begin.k3.flat.layer.rank.s.adamw.resume-full.rec4"
        "$begin.k2.flat.pair.rank.s.adamw.resume-local.rec4")
    ;;
fairscale_fsdp) # a full state of Adam is wrong as it is
    known='memory.rest-after-step run.leaves-nothing'
    cases=("$begin.k2.flat.pair.rank.s.adamw.resume-local.rec4"
        "mlp.seed.natural.full-shard.k2.flat.whole.rank.s.momentum.resume-full.rec4"
        "${begin/full-shard/shard-grad-op}.k2.flat.pair.rank.s.adamw.resume-local.rec4")
    ;;
deepspeed_zero3)
    known='comm.nothing-else frozen.no-state memory.rest-after-shard run.leaves-nothing'
    cases=("$begin.k3.flat.layer.rank.s.adamw.resume.rec4"
        "$begin.k3.flat.layer.rank.s.adamw.resume-full.rec4"
        "$begin.k3.flat.layer.rank.s.adamw.resume.frozen-alternate.rec4")
    ;;
*) no_engine ;;
esac
fault=(late-save shard-twice moments-swapped)
want=('checkpoint.moments checkpoint.parameters' checkpoint.parameters
    checkpoint.moments)
if [ "${3-}" = --bad ]; then
    fault=() cases=() want=()
    while read -r _ what _ id requirements; do
        fault+=("$what") cases+=("$id") want+=("$requirements")
    done < <(grep "^$engine " "$here/bad_input.txt")
fi
needs_engine "$engine"

others() # of the requirements on stdin, those that do not fail as it is
{
    grep -vxF "$(printf '%s\n' $known)" | paste -sd' '
}

# Each fault in its case, and where the records go that are kept.
played() # KEEP OPTION ...
{
    local adapter i keep=$1

    shift
    adapter="$python -W ignore $here/$engine.py $*"
    for i in "${!fault[@]}"; do
        adapter="$adapter --fault ${fault[i]}@${cases[i]}"
    done
    rm -rf "$folder/records" "$folder/report"
    "$cts" run --adapter "$adapter" --case "$(IFS=,; echo "${cases[*]}")" \
        --partial-ok --quiet --report "$folder/report" \
        --records "$folder/records" >"$folder/out" 2>&1
    for i in "${!fault[@]}"; do
        found "${fault[i]}" "$(failing "$folder/report" "${cases[i]}" | others)" \
            "${want[i]}" "$folder/report"
        if [ "$keep" ]; then
            mkdir -p "$keep"
            cp -r "$folder/records/${cases[i]}" "$keep"
        fi
    done
}

played "${4:+$4/$engine}"
# What another release has saved, loaded by the one that is here.
if [ "${3-}" = --bad ]; then
    fault=() cases=() want=()
    saves=$here/../../../fixtures/bad/saves/$engine
    release=$("$python" -W ignore -c "$import
import sys
print(sys.modules['${import//[!a-z ]/ }'.split()[1]].__version__.split('+')[0])" 2>/dev/null | tail -n 1)
    while read -r _ player saver form id requirements; do
        if [ "$player" = "$release" ] && [ -d "$saves/$id" ]; then
            fault+=(other-release) cases+=("$id")
            want+=("${requirements#-}")
        else
            echo "left out: $form of $saver, which $player loads, is here" \
                "$release"
        fi
    done < <(grep "^$engine " "$here/other_releases.txt")
    played "${4:+$4/of-releases/$engine-$release}" --saves "$saves"
fi
# What a script loads, where no values are summoned, and a buffer that counts
# passes; by themselves, as any of the above may have what a script says.
alone() # FAULT CASE REQUIREMENT
{
    "$cts" run --adapter "$python -W ignore $here/$engine.py $options \
        --fault $1" --case "$2" --partial-ok --quiet \
        --report "$folder/alone" >"$folder/out" 2>&1
    found "$1" "$(failing "$folder/alone" | others)" "$3" "$folder/alone"
}

deferred=linear.small.exact.full-shard.k2
options=
case $engine${3-} in
pytorch_fsdp2)
    alone moments-lost \
        $deferred.per-parameter.layer.rank.s.momentum.deferred-exact \
        script.values
    ;;
pytorch_fsdp1)
    options='--assign shards'
    alone moments-lost $deferred.flat.layer.rank.s.momentum.deferred-exact \
        script.values
    alone buffers-back \
        mlp.track.natural.full-shard.k2.flat.layer.rank.s.sgd.eval \
        buffer.as-unsharded
    ;;
esac
# A rank that raises before it meets the others ends them, and is named.
if [ "$engine" = pytorch_fsdp2 ] && [ -z "${3-}" ]; then
    id=$begin.k3.per-parameter.layer.rank.ns.momentum
    "$cts" run --adapter "$python -W ignore $here/$engine.py --fault raises" \
        --case "$id" --partial-ok --quiet --report "$folder/raised" \
        >"$folder/out" 2>&1
    if grep '"requirement":"run.completes".*"outcome":"fail"' "$folder/raised" |
        grep -q '"rank":2,.*RuntimeError: raised before'; then
        echo 'raises: run.completes'
    else
        bad=1
        echo 'FAIL raises: rank 2 is not named'
        tail -n 3 "$folder/out"
    fi
fi
# A script by itself, on stdin, and what fails of it.
scripted() # WHAT CASE REQUIREMENTS
{
    cat >"$folder/script"
    "$cts" run --adapter "$python -W ignore $here/$engine.py --unmeasured \
        $options" --case "$2" --script "$folder/script" --partial-ok --quiet \
        --report "$folder/scripted" >"$folder/out" 2>&1
    found "$1" "$(failing "$folder/scripted" | paste -sd' ')" "$3" \
        "$folder/scripted"
    rm -f "$folder/scripted"
}

# Buffers are the model's own, also where its parameters begin without values.
if [[ $engine = pytorch_fsdp? ]] && [ -z "${3-}" ]; then
    layout=flat
    [ "$engine" = pytorch_fsdp1 ] || layout=per-parameter
    scripted 'buffers without values' \
        mlp.track.natural.full-shard.k2.$layout.layer.rank.s.momentum '' <<'END'
script 1
deferred
--
assign all initial
look
pass 0.0 s
step lr 0.01
zero
look
END
fi
# Parts, also of the local form and with another name; one slot in two forms;
# what was shown by `unshard` is given back, which gathers (docs/results.md);
# what is thawed in a frozen beginning has no backward.
options=
if [ "$engine" = pytorch_fsdp1 ] && [ -z "${3-}" ]; then
    scripted parts \
        mlp.seed.natural.full-shard.k2.flat.layer.rank.s.momentum.frozen-body \
        script.collectives <<'END'
script 1
--
save a local of parameters
wait a
pass 0.0 s
step lr 0.01
zero
save b local of parameters states buffers extra
wait b
save a sharded of parameters
wait a
unshard
reshard
thaw 1
pass 1.0 s
step lr 0.01
zero
assign all summoned
look
again renamed 0
load a lenient
look
save a full
wait a
END
    # States that there are not yet, and a unit of which some ranks have nothing.
    scripted 'before a step' \
        mlp.odd.natural.full-shard.k8.flat.layer.rank.s.momentum '' <<'END'
script 1
--
save a sharded of states
wait a
load a lenient
freeze 2
pass 0.0 s
step lr 0.01
zero
look
END
fi
exit $bad

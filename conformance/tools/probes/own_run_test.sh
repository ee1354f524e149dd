#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# own_run_test.sh - the probe's log of our own MPI run is the recorder's: what
# the recorder recorded inside, and what the probe saw from outside, are the
# same collectives, call for call and byte for byte (testing/own_run.c says
# which stand for which). And a run that communicates past its recorder, or a
# log that was changed, is not.
#
# usage: own_run_test.sh FSDP-CTS PROBE-FOLDER PROGRAM-FOLDER [SANITIZER]
set -uo pipefail
# shellcheck source=conformance/tools/probes/probe_testing.sh
. "$(dirname "$0")/probe_testing.sh"
need_mpi

case3=mlp.seed.natural.full-shard.k3.flat.layer.rank.s.sgd.steps40
case4=mlp.seed.natural.hybrid-shard.k4r2.flat.layer.rank.s.sgd.steps40

# own NAME ENGINE CASE PRELOAD [OPTION...]: leaves NAME/records and NAME/log.
own()
{
    local name=$1 engine=$2 case=$3 preload=$4

    shift 4
    mkdir "$name"
    timeout 120 "$cts" run --engine "$engine" --world mpi --case "$case" \
        --records "$name/records" --record-only --quiet "$@" --launcher \
        "mpirun -n {K} -x LD_PRELOAD=$preload -x FSDP_PROBE_LOG=$folder/$name/log" \
        >out 2>err || cat err
}

# same NAME CASE CODE TEXT WHAT
same()
{
    local why='' got

    "$programs/own_run" "$1/log" "$1/records/$2" >said 2>&1
    got=$?
    if [ "$got" -ne "$3" ] || ! grep -qF -- "$4" said; then
        why="exit $got, not $3, or no '$4': $(head -c 600 said out err)"
    fi
    result "$5" "$why"
}

probe=$probes/fsdp-probe-mpi.so

# ---- Equal ----
own ref3 ref $case3 "$probe"
same ref3 $case3 0 'rank 2: ' 'ref at K = 3: the log is the record'
own ref4 ref $case4 "$probe"
same ref4 $case4 0 'rank 3: ' 'ref, HYBRID at 2 x 2'
own impl3 impl $case3 "$probe"
same impl3 $case3 0 'rank 2: ' 'impl'
for mutant in barrier-in-pass broadcast-extra gather-twice; do
    own "$mutant" ref $case3 "$probe" --mutant $mutant
    same "$mutant" $case3 0 'rank 2: ' "the mutant $mutant, which is recorded, too"
done

# ---- Not equal ----
same_other()
{
    mkdir "$1"
    ln -s "$folder/$2/log" "$1/log"
    ln -s "$folder/$3/records" "$1/records"
}
same_other crossed barrier-in-pass ref3
same crossed $case3 1 'call ' 'the log of a run with more, the record of one without'
export FSDP_PRIVATE=barrier
own hidden ref $case3 "$programs/libprivate_calls.so:$probe"
same hidden $case3 1 'needs' 'a barrier past the recorder'
export FSDP_PRIVATE=message
own message ref $case3 "$programs/libprivate_calls.so:$probe"
same message $case3 1 'messages' 'a message past the recorder'
unset FSDP_PRIVATE

# spoiled NAME CODE TEXT SED WHAT: rank 1's log of ref3, changed.
spoiled()
{
    cp -r ref3 "$1"
    sed -i -E "$4" "$1"/log/mpi-1-*.jsonl
    if cmp -s ref3/log/mpi-1-*.jsonl "$1"/log/mpi-1-*.jsonl; then
        result "$5" "the expression changes nothing"
    fi
    same "$1" $case3 "$2" "$3" "$5"
}
spoiled bytes 1 'rank 1: call 7' \
    '/"seq":7,/{s/"n":[0-9]+/"n":4/;s/"bytes":[0-9]+/"bytes":4/}' \
    'other bytes in one call'
spoiled kind 1 'rank 1: call 3' \
    '/"seq":3,/s/"kind":"[a-z-]+"/"kind":"all-to-all"/' 'another kind'
spoiled comm 1 'rank 1: call 3' '/"seq":3,/s/"comm":[0-9]+/"comm":2/' \
    'another communicator'
spoiled gone 65 'the next call is' '/"seq":9,/d' 'a call is taken out'
spoiled torn 1 'rank 1: ' '/"type":"end"/d' 'the end is taken out'
spoiled last 65 'collectives' '/"seq":700,/,/"type":"collective","seq":9999,/{/"type":"end"/!d}' \
    'the last calls are taken out'

finish 15

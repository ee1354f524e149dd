#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# mpi_probe_test.sh - the probe of MPI under a program that uses nothing of
# ours: every form of a collective, nested communicators, threads, children,
# a program that is killed, and where there is no place for a log.
#
# usage: mpi_probe_test.sh FSDP-CTS PROBE-FOLDER PROGRAM-FOLDER [SANITIZER]
set -uo pipefail
# shellcheck source=conformance/tools/probes/probe_testing.sh
. "$(dirname "$0")/probe_testing.sh"
need_mpi

probe=$probes/fsdp-probe-mpi.so
plain=$programs/plain_fsdp
units=1000,700,333
right=(--units $units --steps 3 --also all-reduce:1:3)

# seen NAME RANKS CODE [WHAT...]: runs it under the probe; its log is in NAME.
# CODE "any": what mpirun makes of it is its own affair.
seen()
{
    local name=$1 ranks=$2 want=$3 got

    shift 3
    export FSDP_PROBE_LOG=$folder/$name
    mpi "$ranks" "$probe" "$plain" $units 3 "$@"
    got=$?
    result "plain_fsdp $* ends with $want" "$(
        [ "$want" = any ] || [ "$got" -eq "$want" ] ||
        echo "exit $got: $(head -c 300 out err)")"
}
shows() # WHAT PATTERN COUNT LOG...
{
    local what=$1 pattern=$2 count=$3 got

    shift 3
    got=$(cat "$@" | grep -c -- "$pattern")
    result "$what" "$([ "$got" -eq "$count" ] || echo "$got lines, not $count")"
}

exported=$(nm -D --defined-only "$probe" | awk '{ print $3 }' |
    grep -v '^MPIX\{0,1\}_' | tr '\n' ' ')
result 'it exports functions of MPI alone' "$exported"

seen plain 3 0
judge 'a step is 2U all-gathers, U reduce-scatters' 0 'AS EXPECTED' plain \
    "${right[@]}"
judge 'as JSON' 0 '"verdict": "as-expected"' plain "${right[@]}" --json
judge 'not resharded: fewer are expected' 1 'NOT AS EXPECTED' plain \
    "${right[@]}" --strategy shard-grad-op
judge 'a step more' 1 '6 calls, 8 expected' plain --units $units --steps 4 \
    --also all-reduce:1:3
judge 'a unit more' 1 '0 calls, 6 expected' plain --units $units,50 --steps 3 \
    --also all-reduce:1:3
judge 'the loss is not left out' 1 '3 calls, 0 expected' plain --units $units \
    --steps 3
for form in in-place nonblocking vector; do
    seen $form 3 0 $form
    judge "$form: the same" 0 'AS EXPECTED' $form "${right[@]}"
done
shows 'in place is seen' '"all-gather".*"in_place":true' 54 in-place/*
shows 'so is what does not wait' '"mode":"nonblocking"' 81 nonblocking/*
shows 'even parts of a vector form are even' 'MPI_Allgatherv' 54 vector/*
seen persistent 3 0 persistent
judge 'persistent: the same' 0 'AS EXPECTED' persistent "${right[@]}"
if nm -D --defined-only "$probe" | grep 'Allgather_init' >/dev/null; then
    shows 'each start is a call' '"mode":"persistent"' 54 persistent/*
fi
seen hybrid 4 0 hybrid
judge 'nested communicators' 0 'AS EXPECTED' hybrid "${right[@]}" \
    --strategy hybrid-shard --replicas 2
shows 'their members are known' '"members":\[\[1,2,2\]\]' 2 hybrid/*
judge 'not as one shard group' 1 'NOT AS EXPECTED' hybrid "${right[@]}"
judge 'replicas that do not divide the world' 64 'multiple' hybrid \
    "${right[@]}" --strategy hybrid-shard --replicas 3
seen others 3 0 others
judge 'every other collective' 1 'all-gather-v of 2 i32' others "${right[@]}"
seen threads 3 0 threads
judge 'threads' 0 'AS EXPECTED' threads "${right[@]}" \
    --also all-gather:1:400:i32
seen messages 3 0 messages
judge 'messages do not pass' 1 '1 messages of 4 bytes' messages "${right[@]}"
judge 'unless they may be' 0 'AS EXPECTED' messages "${right[@]}" --messages-ok
seen child 3 0 child
judge "a child leaves the log alone" 0 'AS EXPECTED' child "${right[@]}"
seen refused 3 0 refused
judge 'a call that failed' 1 'MPI_Bcast, failed' refused "${right[@]}"
# mpirun ends the others as soon as it sees that one has left so, maybe before
# they have: then it is tried again.
for _ in 1 2 3 4 5 6 7 8 9 10; do
    rm -rf leave
    seen leave 3 any leave
    [ "$(grep -l '"type":"end"' leave/* | wc -l)" -ne 3 ] || break
done
judge 'without MPI_Finalize' 0 'exited' leave "${right[@]}" --also barrier:0:1

# ---- Steps ----
export FSDP_PROBE_STEP=10
seen steps 3 0
unset FSDP_PROBE_STEP
judge 'steps by the number of calls' 0 '3 steps; 0 make other calls' steps
export FSDP_PROBE_STEP=ten
seen ten 3 0
unset FSDP_PROBE_STEP
result 'a wrong FSDP_PROBE_STEP is said' "$(grep -q 'FSDP_PROBE_STEP is' err ||
    cat err)"
seen marks 3 0 marks
shows 'MPI_Pcontrol marks' '"mark","at":20,"name":"pcontrol 2"' 3 marks/*
# Twice the model: at rest its parameters and gradients over 2 ranks, and one
# gathered unit, which is there when a step begins. The rest is MPI's.
export FSDP_PROBE_STEP=7
for size in 2000000 4000000; do
    export FSDP_PROBE_LOG=$folder/both-$size
    mpi 2 "$probe:$probes/fsdp-probe-heap.so" "$plain" \
        $size,$((size / 2)) 3
    sed -n 's/.*"name":"step 1","live":\([0-9]*\),.*/\1/p' \
        both-$size/heap-0-* >live-$size
done
unset FSDP_PROBE_STEP
judge 'both probes' 0 'AS EXPECTED' both-2000000 --units 2000000,1000000 \
    --steps 3 --also all-reduce:1:3 --peak-at-most $((64 * 1048576))
judge 'the heap has the steps, too' 0 "at mark 'step 2'" both-2000000
result 'M/K + the largest unit' "$(
    paste live-2000000 live-4000000 | awk '
        { more = $2 - $1 - (2 * 1500000 + 2000000) * 4 }
        END { if (NR != 1 || more < -65536 || more > 65536) print more " bytes" }')"

# ---- Trouble ----
seen die 3 any die
judge 'a rank that was killed' 2 'mpi rank 1: no end' die "${right[@]}"
shows 'its log goes up to there' '"type":"collective"' 13 die/mpi-1-*
for where in /dev/full /proc/nowhere; do
    export FSDP_PROBE_LOG=$where
    mpi 2 "$probe" "$plain" $units 2
    code=$?
    result "a log in $where: the program goes on" "$([ $code -eq 0 ] || cat err)"
    result 'each rank says so once' "$(
        [ "$(grep -c 'fsdp-cts probe: ' err)" -eq 2 ] || cat err)"
done
if [ "$(id -u)" -ne 0 ]; then
    mkdir -m 500 readonly
    export FSDP_PROBE_LOG=$folder/readonly
    mpi 2 "$probe" "$plain" $units 2
    result 'a folder that cannot be written' "$(
        grep -q 'Permission denied' err || cat err)"
fi
unset FSDP_PROBE_LOG
mpi 2 "$probe" "$plain" $units 2
result 'no folder named' "$(grep -q 'FSDP_PROBE_LOG is not set' err || cat err)"
seen plain 3 0
judge 'two runs in one folder' 65 'logs of two runs?' plain "${right[@]}"
rm -f vector/mpi-2-*
judge 'a rank without a log' 2 'mpi: logs of 2 of 3 ranks' vector "${right[@]}"

finish 50

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# supervision_test.sh - engines that do more than they should, and the run that
# goes on all the same: it ends, its output is its own, and nothing is left.
#
# usage: supervision_test.sh FSDP-CTS [INCLUDE-FOLDER]
set -uo pipefail

# shellcheck source=conformance/cli/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/../checks.sh"
engine=$(realpath "$(dirname "$cts")/../tests/hostile.so")
[ -f "$engine" ] || skip "there is no $engine"
patience=2
id=mlp.seed.natural.full-shard.k2.flat.layer.rank.s.sgd.steps40

# run HOW ARGUMENT...: sets code; at most a minute, which is more than each is
# allowed.
run()
{
    local how=$1
    shift
    code=0
    FSDP_HOSTILE=$how timeout 60 "$cts" run --engine "$engine" \
        --timeout "$patience" --jobs 1 --case "$id" --partial-ok "$@" \
        >"$folder/out" 2>"$folder/err" || code=$?
}

# left NAME: processes of this name that live on.
left()
{
    local comm

    for comm in /proc/[0-9]*/comm; do
        if [ "$(cat "$comm" 2>/dev/null)" = "$1" ]; then
            echo "process ${comm//[!0-9]/} is left"
        fi
    done
}

run as-it-is
result 'as it is, it is right' "$([ "$code" = 0 ] || echo "exit $code")"

run daemon
result 'a daemon that holds descriptors keeps no run' \
    "$([ "$code" = 1 ] || echo "exit $code")"
result 'and does not live on' "$(left hostile-daemon)"

result 'but is a finding' \
    "$(grep -q 'fail comm.no-private-channel' "$folder/out" || echo 'it is not')"

# Records that nobody keeps lie in shared memory: what an engine puts beside
# them goes all the same, if it can be kept from there.
before=$(ls -A /dev/shm)
run shared-memory
if grep -qs hostile-segment <<<"$before"; then
    echo 'somebody else left /dev/shm/hostile-segment here'
elif FSDP_HOSTILE=tell run tell && grep -q 'parent 1$' "$folder/err"; then
    result 'what an engine left in shared memory is gone' \
        "$(ls /dev/shm/hostile-segment 2>/dev/null)"
fi
rm -f /dev/shm/hostile-segment

run forge
result 'what is printed says nothing to the supervisor' \
    "$([ "$code" = 0 ] || echo "exit $code: $(head -n 1 "$folder/out")")"
result 'and reaches no terminal as it is' \
    "$(grep -l "$(printf '\033')" "$folder/out" "$folder/err")"
result 'but is shown, with its case' \
    "$(grep -qF "[$id rank 1] ?[2J?[31mCONFORMANT: forged" "$folder/err" ||
        echo 'it is not')"

run flood
result 'a flood is cut short' \
    "$(n=$(grep -c ' line ' "$folder/err")
    [ "$n" -ge 5 ] && [ "$n" -le 12 ] || echo "$n lines")"
result 'and ends nothing' "$([ "$code" = 0 ] || echo "exit $code")"

run chatter
result 'who prints while it hangs is ended' \
    "$([ "$code" = 1 ] && grep -q 'progress' "$folder/out" ||
        echo "exit $code: $(head -n 1 "$folder/out")")"

# In a namespace no rank can stop its worker.
export FSDP_CTS_ISOLATION=none
run stop-worker
result 'a worker that is stopped is ended' \
    "$([ "$code" = 1 ] || echo "exit $code")"
result 'and its case says that it made no progress' \
    "$(grep -q 'run.survives' "$folder/out" || echo 'it does not')"
result 'nothing runs on' "$(pgrep -f "$engine" | head -n 3)"

run stop-run
result 'a run that a rank stops is continued' \
    "$([ "$code" = 0 ] || echo "exit $code")"

# From a terminal it is suspended all the same, until the shell continues it.
# (`timeout` puts it into a group of its own, as a shell does.)
other=mlp.seed.natural.full-shard.k3.flat.layer.rank.s.sgd.steps40
# Of so many cases that it is not over when somebody looks.
many=$("$cts" list cases | awk '{ print $1 }' |
    grep -m 30 '^mlp\.seed\.natural\.full-shard\.k[23]' | paste -sd,)
id=$many run none &
until pgrep -f "^$cts worker .*--engine $engine" >/dev/null; do
    kill -0 $! 2>/dev/null || break # it has ended, as the next line says
    sleep 0.02
done
pid=$(pgrep -f "^$cts run --engine $engine")
kill -TSTP "$pid"
sleep 3
state=$(sed -n 's/^State:[^A-Z]*\(.\).*/\1/p' "/proc/$pid/status")
kill -CONT "$pid"
wait
result 'one that is suspended is not' \
    "$([ "$state" = T ] || echo "its state is ${state:-none}")"
result 'and goes on' \
    "$(grep -q '^right up to level' "$folder/out" || head -n 1 "$folder/err")"

# Nobody but the supervisor can say how the case of a worker that is gone went.
ASAN_OPTIONS=${ASAN_OPTIONS:-}:handle_segv=0 run segv --world threads \
    --records "$folder/threads"
result 'a worker of threads that dies leaves a record' \
    "$([ "$code" = 1 ] || echo "exit $code")"
result 'of its world' "$(grep -q '"world": "threads"' \
    "$folder/threads/$id/case.json" || echo 'it is not')"

run killed
result 'who is killed from outside gets no verdict' \
    "$([ "$code" = 2 ] || echo "exit $code")"
result 'and the signal is named' \
    "$(grep -q 'SIGKILL' "$folder/out" || echo 'it is not')"

# Where no namespace keeps engines away from records, what they change there is
# seen.
echo "$other empty-records" >"$folder/ways"
id=$id,$other run "$folder/ways"
result 'a record that is changed later is not judged' \
    "$([ "$code" = 2 ] || echo "exit $code")"
result 'and is named' "$(grep -qF "the record of $id was changed after" \
    "$folder/err" || echo 'it is not')"
unset FSDP_CTS_ISOLATION
id=$id,$other run "$folder/ways"
if grep -qF "the record of $id was" "$folder/err"; then
    echo 'skipped: there are no namespaces here'
else
    result 'in a namespace it cannot be changed' \
        "$([ "$code" = 0 ] || echo "exit $code")"
fi

patience=30 # mpirun's ranks are slow to meet
# Open MPI says which rank it was: the other one ended because of it.
if run none --world mpi; [ "$code" != 0 ]; then
    echo "no MPI world here: $(head -n 1 "$folder/err")"
    finish 22
    exit
fi
run killed --world mpi
result 'over MPI, too, who is killed gets no verdict' \
    "$([ "$code" = 2 ] || echo "exit $code")"
result 'and the rank is named that mpirun names' \
    "$(grep -q 'rank 1 was killed by signal 9 (SIGKILL)' "$folder/out" ||
        grep 'rank 1' "$folder/out")"
ASAN_OPTIONS=${ASAN_OPTIONS:-}:handle_segv=0 run segv --world mpi
result 'over MPI a crash is a failure' \
    "$([ "$code" = 1 ] || echo "exit $code")"
result 'of the rank that crashed' \
    "$(grep -q 'rank 1 was killed by signal 11 (SIGSEGV)' "$folder/out" ||
        grep 'rank 1' "$folder/out")"
finish 26

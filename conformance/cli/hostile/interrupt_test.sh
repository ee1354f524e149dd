#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# interrupt_test.sh - a run that is ended at any moment, by SIGINT, SIGTERM or
# SIGKILL, leaves no process, no shared memory and, if it had a chance, no
# half-written file; it never says that all is well.
#
# usage: interrupt_test.sh FSDP-CTS [INCLUDE-FOLDER] [MOMENTS]
set -uo pipefail

# shellcheck source=conformance/cli/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/../checks.sh"
moments=${3:-5}
export TMPDIR=$folder/tmp
# What was ended is found by this name: it is in every worker's command line.
# It is not the folder's own, which is this script's as well.
records=$folder/records.$$.unique
mkdir "$TMPDIR"

# Open MPI's segments of this test go to a folder of its own: those in /dev/shm
# are other programs', and so are named semaphores, of which the suite has none,
# and folders of records, which runs of this test have where TMPDIR says.
export OMPI_MCA_btl_vader_backing_directory=$folder/shm
mkdir "$folder/shm"

shared_memory()
{
    find /dev/shm "$folder/shm" -mindepth 1 -maxdepth 1 \
        ! -path '/dev/shm/vader_segment*' ! -path '/dev/shm/sem.*' \
        2>/dev/null | sort
}

# in_use FOLDER: whether a run beside this test has locked its folder in memory,
# or has removed it.
in_use()
{
    ! (flock -n 9) 9<"$1"
} 2>/dev/null

# left_in_memory BEFORE: what was not there, and is no folder of another run,
# which locks it a moment after it has made it.
left_in_memory()
{
    local left path

    for _ in $(seq 20); do
        left=
        while read -r path; do
            if [[ $path != /dev/shm/fsdp-cts.* ]] || ! in_use "$path"; then
                left+=" $path"
            fi
        done < <(comm -13 <(echo "$1") <(shared_memory))
        [ -n "$left" ] || break
        sleep 0.05
    done
    echo "$left"
}

half_written()
{
    find "$1" \( -name '*.partial' -o -name '.worker-*' \) -print -quit \
        2>/dev/null
}

# Processes of a run to the records folder $1.
processes()
{
    pgrep -f -- "--records $1"
}

# until_gone FOLDER: waits for 2 s at most
until_gone()
{
    for _ in $(seq 40); do
        processes "$1" >/dev/null || return 0
        sleep 0.05
    done
    return 1
}

# until_listens PID: waits until the run has said what becomes of SIGINT, for 10 s
# at most. A shell starts programs in the background with that signal ignored.
until_listens()
{
    for _ in $(seq 500); do
        if [ "/proc/$1/exe" -ef "$cts" ] &&
            grep -q '^SigCgt:.*[2367abef]$' "/proc/$1/status"; then
            return
        fi
        sleep 0.02
    done
}

# no_moment CODE SIGNAL: the run whose words are in $folder/out and $folder/err
# was not there to be ended. It had said its verdict and nothing else: between
# that and its parent's wait() it can still be sent a signal. Or it had not yet
# said what becomes of signals, and died of this one. Were signals ignored, or
# not caught, every run would be such a one, and there would be no moments.
no_moment()
{
    [ ! -s "$folder/err" ] || return 1
    if [ "$1" -eq 0 ]; then
        grep -q -e '^PASSED' -e '^CONFORMANT' "$folder/out"
    else
        [ "$2" != KILL ] && [ "$1" -eq $((128 + $(kill -l "$2"))) ]
    fi
}

# moment SIGNAL WORLD SECONDS ARGUMENT...: 1 if it was none.
moment()
{
    local signal=$1 world=$2 seconds=$3 why='' kept=$records begun got pid
    local before left where
    shift 3
    set -- --engine ref --quiet --partial-ok --world "$world" "$@"
    before=$(shared_memory)
    # With records kept, and with a folder of the run's own.
    if [ "$((RANDOM % 2))" -eq 0 ]; then
        "$cts" run "$@" --records "$records" \
            >"$folder/out" 2>"$folder/err" &
    else
        kept=$TMPDIR
        "$cts" run "$@" >"$folder/out" 2>"$folder/err" &
    fi
    pid=$!
    until_listens "$pid"
    begun=$(date +%s%N)
    sleep "$seconds"
    kill -s "$signal" "$pid" 2>/dev/null
    wait "$pid" 2>/dev/null
    got=$?
    no_moment "$got" "$signal" && return 1
    where=$records
    [ "$kept" = "$TMPDIR" ] && where=$TMPDIR/fsdp-cts.
    if [ "$got" -eq 0 ]; then
        why='exit code 0'
    elif ! until_gone "$where"; then
        why="processes are left: $(processes "$where" | tr '\n' ' ')"
    elif [ "$(($(date +%s%N) - begun))" -gt \
        "$(awk -v s="$seconds" 'BEGIN { printf "%.0f", (s + 10) * 1e9 }')" ]
    then
        why='it took more than 10 s to end'
    elif [ "$signal" != KILL ] && [ -n "$(half_written "$folder")" ]; then
        why="left $(half_written "$folder")"
    elif [ "$signal" != KILL ] && [ -n "$(ls -A "$TMPDIR")" ]; then
        why="left $(ls -A "$TMPDIR")"
    elif [ "$signal" != KILL ] && ! grep -q interrupted "$folder/err"; then
        why="does not say why: $(head -c 200 "$folder/err")"
    elif left=$(left_in_memory "$before") && [ -n "$left" ]; then
        why="left in /dev/shm:$left"
    fi
    result "SIG$signal after $seconds s, $world" "$why"
    # What SIGKILL left is swept by the next run into the same folder.
    rm -rf "$TMPDIR"
    mkdir "$TMPDIR"
    return 0
}

# A random moment in [0.02, $1) seconds.
random()
{
    awk -v n="$RANDOM" -v most="$1" \
        'BEGIN { printf "%.3f", 0.02 + n / 32768 * (most - 0.02) }'
}

RANDOM=${SEED:-$$}
begun=$(date +%s%N)
"$cts" run --engine ref --quiet --partial-ok --ranks 7 \
    --workload linear,gpt >/dev/null 2>&1
most=$(awk -v ns="$(($(date +%s%N) - begun))" 'BEGIN { print ns / 1e9 }')
# Open MPI's folder of a session may outlive its mpirun for a moment.
mkdir "$folder/mpi"
mpi=$(TMPDIR=$folder/mpi "$cts" run --engine ref --quiet --world mpi \
    --ranks 2 --workload linear --partial-ok 2>/dev/null)

for signal in INT TERM KILL; do
    hits=0
    tries=0
    while [ "$hits" -lt "$moments" ] && [ "$tries" -lt "$((5 * moments))" ]; do
        tries=$((tries + 1))
        # From the first worker's start to the end of judging.
        moment "$signal" local "$(random "$most")" --ranks 7 \
            --workload linear,gpt &&
            hits=$((hits + 1))
    done
    result "SIG$signal" "$([ "$hits" -eq "$moments" ] ||
        echo "only $hits of $tries runs were still there")"
    # The whole manifest is still running then.
    moment "$signal" local "$(random 2)"
    moment "$signal" threads "$(random 2)"
    [ -z "$mpi" ] || moment "$signal" mpi "$(random 2)" --ranks 3
done

# A run into the folder that all of these were ended in is as good as any: of
# the cases that left something there.
if "$cts" run --engine ref --quiet --records "$records" --partial-ok --ranks 7 \
    --workload linear,gpt >"$folder/out" 2>"$folder/err"; then
    result 'a run afterwards' "$(half_written "$records")"
else
    result 'a run afterwards' "$(cat "$folder/out" "$folder/err")"
fi

finish 1

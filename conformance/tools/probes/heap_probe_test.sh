#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# heap_probe_test.sh - the probe of the heap under a program that takes memory
# in every way: peaks, threads, children, marks, and where there is no place
# for a log.
#
# usage: heap_probe_test.sh FSDP-CTS PROBE-FOLDER PROGRAM-FOLDER [SANITIZER]
set -uo pipefail
# shellcheck source=conformance/tools/probes/probe_testing.sh
. "$(dirname "$0")/probe_testing.sh"

heap() # WHAT [ENVIRONMENT...]
{
    local what=$1

    shift
    timeout 60 env FSDP_PROBE_LOG="$folder/$what" "$@" \
        LD_PRELOAD="$probes/fsdp-probe-heap.so" \
        "$programs/plain_heap" "$what" >out 2>err
    code=$?
}
ends() # WHAT CODE
{
    result "$1" "$([ "$code" -eq "$2" ] || echo "exit $code: $(cat err)")"
}
# between WHAT LEAST MOST FILE KEY: of its end.
between()
{
    local got

    got=$(sed -n "s/.*\"type\":\"end\".*\"$5\":\([0-9]*\).*/\1/p" "$4")
    result "$1" "$([ -n "$got" ] && [ "$got" -ge "$2" ] && [ "$got" -le "$3" ] ||
        echo "$5 is '$got', not $2 to $3: $(tail -n 1 "$4")")"
}
mib=1048576
# The C library's own, and page by page what a block has beside what was asked.
slack=$((200 * 1024))

heap plain RANK=3 WORLD_SIZE=8
ends 'blocks' 0
log=$(echo plain/heap-3-*.jsonl)
between 'their peak' $((64 * mib)) $((64 * mib + slack)) "$log" peak
between 'what stays' $((16 * mib)) $((16 * mib + slack)) "$log" live
judge 'a bound that holds' 0 'AS EXPECTED' plain --peak-at-most $((65 * mib))
judge 'one that does not' 1 'NOT AS EXPECTED' plain --peak-at-most $((64 * mib))
heap every
ends 'every function' 0
between 'their peak' $((14 * mib)) $((18 * mib)) every/*.jsonl peak
between 'nothing stays' 0 "$slack" every/*.jsonl live
heap maps
ends 'past malloc' 0
between 'the peak of maps' $((32 * mib)) $((32 * mib + slack)) maps/*.jsonl peak
between 'what stays mapped' $((16 * mib)) $((16 * mib)) maps/*.jsonl mapped
heap threads
ends 'eight threads' 0
between 'leave nothing' 0 "$slack" threads/*.jsonl live
heap children
ends 'children of a program with threads' 0
judge 'all logs are sound' 0 'peak' children
heap child
ends 'a child' 0
parent=$(grep -l '"parent":null' child/*)
born=$(grep -L '"parent":null' child/*)
between "the parent's peak" $((60 * mib)) $((60 * mib + slack)) "$parent" peak
between "the child's, with what it inherited" $((30 * mib)) \
    $((30 * mib + slack)) "$born" peak
heap borrowed
ends 'a child of vfork' 0
between "does not end its parent's log" $((16 * mib)) $((16 * mib + slack)) \
    borrowed/*.jsonl peak
heap marks
ends 'marks' 0
judge 'the most since the one before' 0 "at mark 'after 3 MiB'" marks
result 'is of each' "$(
    sed -n 's/.*"mark".*"peak_since":\([0-9]*\)}/\1/p' marks/* >since
    awk -v m=$mib 'NR == 2 && ($1 < 8 * m || $1 > 9 * m) { print "8: " $1 }
        NR == 3 && ($1 < 3 * m || $1 > 4 * m) { print "3: " $1 }
        END { if (NR != 3) print NR " marks" }' since)"

heap die
ends 'a program that is killed' 137
judge 'its peak is known, within a 16th' 2 'no end' die \
    --peak-at-most $((32 * mib))
judge 'and that it was too much' 1 'a peak of 314' die --peak-at-most $mib
heap closes
ends 'a program that closes all files' 0
result 'has its own to itself' "$(
    [ ! -s mine ] || echo "in it: $(head -c 200 mine)")"
result 'and is told' "$(grep -q 'the program has closed the log' err || cat err)"

code=0
LD_PRELOAD=$probes/fsdp-probe-heap.so FSDP_PROBE_LOG=/dev/full \
    "$programs/plain_heap" plain 2>err || code=$?
ends 'a full disk: the program goes on' 0
result 'and says so once' "$([ "$(wc -l <err)" -eq 1 ] &&
    grep -q 'No space left' err || cat err)"
LD_PRELOAD=$probes/fsdp-probe-heap.so FSDP_PROBE_LOG=/proc/nowhere \
    "$programs/plain_heap" plain 2>err || code=$?
ends 'nowhere to write: the program goes on' 0
result 'and says so once, too' "$([ "$(wc -l <err)" -eq 1 ] || cat err)"
(
    ulimit -f 1
    LD_PRELOAD=$probes/fsdp-probe-heap.so FSDP_PROBE_LOG=$folder/limit \
        "$programs/plain_heap" marks 2>err
    for _ in 1 2 3 4 5 6 7 8; do
        LD_PRELOAD=$probes/fsdp-probe-heap.so FSDP_PROBE_LOG=/dev/null \
            "$programs/plain_heap" plain 2>>err || exit 1
    done
)
code=$?
ends 'a limit on files, and a device for a log' 0

# Programs that nobody here wrote.
mkdir sorted
for _ in {1..20000}; do echo "$RANDOM$RANDOM"; done >numbers
env FSDP_PROBE_LOG="$folder/sorted" \
    LD_PRELOAD="$probes/fsdp-probe-heap.so" sort --parallel=4 -S 8M numbers \
    >of_probe 2>err
sort numbers >without
result 'sort sorts' "$(cmp of_probe without 2>&1)"
judge 'and its log is sound' 0 'peak' sorted
if command -v python3 >/dev/null; then
    env FSDP_PROBE_LOG="$folder/python" \
        LD_PRELOAD="$probes/fsdp-probe-heap.so" python3 -c '
import threading, subprocess, ctypes
x = bytearray(48 << 20)
def work():
    for i in range(2000):
        y = [bytes(i) for _ in range(10)]
t = [threading.Thread(target=work) for _ in range(4)]
[i.start() for i in t]
subprocess.run(["true"])
[i.join() for i in t]' >out 2>err
    code=$?
    ends 'python, threads and a process' 0
    judge 'its peak' 0 'python' python
fi

finish 36

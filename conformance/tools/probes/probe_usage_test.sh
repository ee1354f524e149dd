#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# probe_usage_test.sh - `fsdp-cts probe` on kept logs, and on what is no log or
# no right option: one line that says why, and the exit code that --help
# promises.
#
# usage: probe_usage_test.sh FSDP-CTS [INCLUDE-FOLDER]
set -uo pipefail

# shellcheck source=conformance/cli/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../cli/checks.sh"
logs=$PWD/fixtures/probes
cd "$folder" || exit 1

# ends CODE TEXT ARGUMENT...: TEXT is in what it says; a refusal is one line on
# stderr, and nothing else.
ends()
{
    local code=$1 text=$2 why='' got

    shift 2
    timeout 60 "$cts" probe "$@" >out 2>err
    got=$?
    if [ "$got" -ne "$code" ]; then
        why="exit $got, not $code"
    elif ! cat out err | grep -F -- "$text" >/dev/null; then
        why="no '$text'"
    elif [ "$code" -ge 64 ] && { [ -s out ] || [ "$(wc -l <err)" -ne 1 ]; }; then
        why='not one line on stderr'
    fi
    result "probe $*" "${why:+$why: $(head -c 300 out err)}"
}

right=(--units 10,7 --steps 1 --also all-reduce:1:1 --also broadcast:1:1)
ends 0 'usage: fsdp-cts probe' --help
ends 0 'all-gather' "$logs"
ends 0 'peak 8392688' "$logs/heap-none.jsonl"
ends 0 '"peak_since": 3145736' --json "$logs/heap-none.jsonl"
ends 0 'AS EXPECTED' "$logs/heap-none.jsonl" --peak-at-most 8392688
ends 1 'NOT AS EXPECTED' "$logs/heap-none.jsonl" --peak-at-most 8392687
ends 2 'no log of a heap' "$logs/mpi-0.jsonl" --peak-at-most 1
ends 2 'no log of collectives' "$logs/heap-none.jsonl" "${right[@]}"
ends 1 'MPI_Bcast, failed' "$logs"/mpi-* "${right[@]}" --messages-ok
ends 1 '1 messages of 4 bytes' "$logs"/mpi-* "${right[@]}"
# Without what is wrong there: the failed call and the message.
for rank in 0 1; do
    sed '/"failed"/d; s/"sends":1,"send_bytes":4/"sends":0,"send_bytes":0/' \
        "$logs/mpi-$rank.jsonl" >"mpi-$rank.jsonl"
done
ends 0 'AS EXPECTED' mpi-0.jsonl mpi-1.jsonl "${right[@]}"
ends 0 '"verdict": "as-expected"' mpi-0.jsonl mpi-1.jsonl "${right[@]}" --json
ends 2 'mpi: logs of 1 of 2 ranks' mpi-0.jsonl "${right[@]}"
ends 2 'mpi rank 0: no log' mpi-1.jsonl "${right[@]}"
ends 65 'logs of two runs?' mpi-0.jsonl mpi-0.jsonl

ends 64 'needs a LOG, or a folder' --json
ends 64 "'--nonsense'" "$logs" --nonsense
ends 64 'go together' "$logs" --units 1
ends 64 'go together' "$logs" --steps 1
for units in '' , 1, x2 1x 1x0 1x4097 -1 1.5 281474976710657 1x2x3 1y2; do
    ends 64 "--units '$units'" "$logs" --steps 1 --units "$units"
done
for also in '' all-reduce all-reduce:1 :1:1 all-reduced:1:1 all-reduce:1:x \
    all-reduce:1:1: all-reduce:1:1:f31 all-reduce:-1:1; do
    ends 64 "--also '$also'" "$logs" --also "$also"
done
ends 64 '--steps' "$logs" --units 1 --steps 0
ends 64 "unknown strategy 'fullshard'" "$logs" --strategy fullshard
ends 64 '--replicas' "$logs" --replicas 0
ends 64 '--sync' "$logs" --sync sn
ends 64 "unknown dtype 'float': none, f32" "$logs" --dtype float
ends 64 '--peak-at-most' "$logs" --peak-at-most 1G

ends 65 'No such file' nowhere
mkdir empty
ends 65 'no logs' empty
mkfifo pipe.jsonl
ends 65 'a regular file' pipe.jsonl
head -c 5000 /dev/urandom >noise.jsonl
ends 65 'noise.jsonl' noise.jsonl
: >nothing.jsonl
ends 65 'header' nothing.jsonl
sed 's/"n":5,/"n":5,"x":0,/' mpi-0.jsonl >more.jsonl
ends 65 'unknown field "x"' more.jsonl
sed '/"seq":3,/d' mpi-0.jsonl >gap.jsonl
ends 65 'the next call is 3' gap.jsonl

finish 53

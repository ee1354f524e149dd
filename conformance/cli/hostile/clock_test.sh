#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# clock_test.sh - the time of day is set while a run goes on, by years, forwards
# and back. What waits, and what gives up, goes by clocks that nobody can set:
# a right engine passes, and one that hangs is ended.
#
# usage: clock_test.sh FSDP-CTS [INCLUDE-FOLDER]
set -uo pipefail

# shellcheck source=conformance/cli/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/../checks.sh"
tests=$(realpath "$(dirname "$cts")/../tests")
id=mlp.seed.natural.full-shard.k2.flat.layer.rank.s.sgd.steps40

# ---- No source waits by another clock ----
root=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../../..")
sources=$(find "$root"/{ref,impl,conformance,docs/example} -name '*.[ch]' \
    ! -name clock_testing.c -o -name '*.cu' -o -name '*.cuh')
# Of these, what POSIX lets wait until a time of day, and what asks for one.
waits='CLOCK_REALTIME|\<gettimeofday|\<sem_timedwait|_timedlock\>|_timedrdlock'
waits+='|_timedwrlock|\<pthread_timedjoin_np|\<mq_timed|\<mtx_timedlock'
waits+='|\<cnd_timedwait|\<clock_settime\('
# shellcheck disable=SC2086  # names without blanks
result 'no source waits until a time of day' "$(grep -nE "$waits" $sources)"
printf '%s;\n' 'sem_timedwait(&s, &t)' 'pthread_mutex_timedlock(&m, &t)' \
    'clock_gettime(CLOCK_REALTIME, &t)' 'gettimeofday(&t, NULL)' \
    'clock_gettime(CLOCK_MONOTONIC, &t)' >"$folder/planted.c"
result 'one that did would be found' "$(
    n=$(grep -cE "$waits" "$folder/planted.c")
    [ "$n" -eq 4 ] || echo "$n of 4")"
# A condition goes by the time of day unless it is told otherwise.
# shellcheck disable=SC2086
result 'conditions go by the clock that they are told' "$(
    for file in $(grep -l '\<pthread_cond_timedwait' $sources); do
        grep -q 'pthread_condattr_setclock(.*CLOCK_MONOTONIC)' "$file" ||
            echo "$file"
    done)"

# ---- Runs ----
# both HOW: a right engine and one whose rank hangs, under the clock that the
# function HOW sets
both()
{
    "$1" timeout 100 "$cts" run --engine ref --case "$id" --partial-ok \
        --timeout 20 >"$folder/out" 2>"$folder/err"
    code=$?
    result "$1: a right engine passes" "$(
        [ "$code" = 0 ] || tail -n 1 "$folder/out" "$folder/err")"
    FSDP_HOSTILE='sleep' "$1" timeout 100 "$cts" run --engine "$tests/hostile.so" \
        --case "$id" --partial-ok --timeout 2 >"$folder/out" 2>"$folder/err"
    code=$?
    result "$1: one that hangs is ended" "$(
        [ "$code" = 1 ] || echo "exit $code"
        grep -q 'progress' "$folder/out" || head -n 3 "$folder/out")"
}

# At each look it is another time. (A sanitizer's library wants to be the first
# one.)
another_at_each_look()
{
    CLOCK_TESTING=$folder/looks \
        LD_PRELOAD=$tests/clock_testing.so${LD_PRELOAD:+:$LD_PRELOAD} "$@"
}
year=$(another_at_each_look date +%Y 2>/dev/null)
if [ "${year:-$(date +%Y)}" = "$(date +%Y)" ]; then
    skip 'no clock that jumps here'
fi
rm -f "$folder/looks"
both another_at_each_look
result 'and somebody has looked' \
    "$(grep -q '^fsdp-cts ' "$folder/looks" || echo 'nobody')"

# libfaketime reads a file at each look, which says how far off the time is.
library=$(faketime -f +0 printenv LD_PRELOAD 2>/dev/null)
set_now_and_then()
{
    LD_PRELOAD=$library${LD_PRELOAD:+:$LD_PRELOAD} FAKETIME_NO_CACHE=1 \
        FAKETIME_TIMESTAMP_FILE=$folder/clock FAKETIME_DONT_FAKE_MONOTONIC=1 \
        "$@"
}
echo +10y >"$folder/clock"
year=$([ -z "$library" ] || set_now_and_then date +%Y 2>/dev/null)
if [ "${year:-0}" -le "$(date +%Y)" ]; then
    echo 'no libfaketime here (Debian: faketime): with it the clock is set, too'
    finish 6
    exit
fi
while [ -d "$folder" ]; do
    for off in +10y -10y +0 +1h; do
        echo "$off" >"$folder/clock.new" &&
            mv "$folder/clock.new" "$folder/clock"
        sleep 0.05
    done
done 2>/dev/null &
setter=$!
both set_now_and_then
kill "$setter"
finish 8

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# memory_test.sh - a run in a control group whose memory is limited, from where
# nothing can begin to where all passes: the system kills whom it likes. No
# engine is blamed for it, who was killed is named, and nothing is left.
#
# usage: memory_test.sh FSDP-CTS [INCLUDE-FOLDER [MEGABYTES ...]]
set -uo pipefail

# shellcheck source=conformance/cli/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/../checks.sh"
shift $(($# < 2 ? $# : 2))
# Two ranks of 45 MB each, and some.
id=linear.large.exact.full-shard.k2.flat.layer.rank.s.sgd.steps2.rec0
export TMPDIR=$folder/tmp
mkdir "$TMPDIR"

# Version 2 of control groups, or the first; both want permission.
group=
if grep -qw memory /sys/fs/cgroup/cgroup.subtree_control 2>/dev/null; then
    group=/sys/fs/cgroup/fsdp-cts-test.$$
    limit=memory.max
else
    group=/sys/fs/cgroup/memory/fsdp-cts-test.$$
    limit=memory.limit_in_bytes
fi
# Whoever is in it enters it, and so does what it starts.
if ! mkdir "$group" 2>/dev/null || [ ! -w "$group/$limit" ]; then
    skip 'no control group can be made here that limits memory'
fi
trap 'rm -rf "$folder"; rmdir "$group"' EXIT
[ ! -w "$group/memory.swap.max" ] || echo 0 >"$group/memory.swap.max"

# limited MEGABYTES: sets code
limited()
{
    echo "${1}M" >"$group/$limit"
    # shellcheck disable=SC2016  # the inner one's
    { timeout 100 bash -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" \
        "$cts" run --engine ref --jobs 1 --case "$id" --partial-ok \
        >"$folder/out" 2>"$folder/err"; } 2>/dev/null
    code=$?
}

# What the run left: processes, in a moment; and folders, if it was not killed.
left()
{
    for _ in $(seq 100); do
        [ -n "$(cat "$group/cgroup.procs")" ] || break
        sleep 0.1
    done
    cat "$group/cgroup.procs"
    [ "$code" -eq 137 ] || ls -A "$TMPDIR"
    rm -rf "$TMPDIR"
    mkdir "$TMPDIR"
}

for megabytes in "${@:-3 8 32 64}"; do
    # shellcheck disable=SC2086  # numbers
    for m in $megabytes; do
        limited "$m"
        why=$(case $code in
        0 | 137) ;; # it was enough; the run itself was killed
        2)
            grep -q 'SIGKILL\|memory' "$folder/out" "$folder/err" ||
                head -n 2 "$folder/out" "$folder/err"
            ;;
        *) [ "$code" -gt 1 ] && [ -s "$folder/err" ] || echo "exit $code" ;;
        esac)
        result "$m MB: exit $code" "$why$(left)"
        [ "$code" -ne 2 ] || killed=yes
    done
done
result 'ranks were killed, and the run was not' "$(
    [ -n "${killed:-}" ] || echo 'it never was so')"
limited 512
result '512 MB are enough' "$([ "$code" -eq 0 ] || echo "exit $code"
    left)"
finish 5

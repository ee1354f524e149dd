# SPDX-License-Identifier: Apache-2.0
#
# checks.sh - what tests of commands share; they source it. It takes the
# FSDP-CTS that they were given, makes a folder that goes when they end, counts,
# and leaves out what cannot run here.
# shellcheck shell=bash

# shellcheck disable=SC2034  # for the tests
cts=$(realpath "$1")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
passed=0
failed=0

result() # WHAT, why it failed or nothing
{
    if [ -z "$2" ]; then
        echo "ok   $1"
        passed=$((passed + 1))
    else
        echo "FAIL $1: $2"
        failed=$((failed + 1))
    fi
}

skip() # WHY
{
    echo "skipped: ${1#skipped: }"
    exit 77
}

needs() # PROGRAM...: without one of them the test is left out
{
    local program
    for program; do
        command -v "$program" >/dev/null || skip "$program is not installed"
    done
}

needs_hosts() # which the script hosts plays
{
    mkdir "$folder/probe"
    "$(dirname "${BASH_SOURCE[0]}")/../world/hosts" 1 "$folder/probe" true \
        >"$folder/out" 2>&1 || skip "$(cat "$folder/out")"
}

finish() # HOW MANY must have passed
{
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ] && [ "$passed" -ge "$1" ]
}

# SPDX-License-Identifier: Apache-2.0
#
# checks.sh - what tests of commands share; they source it. It takes the
# FSDP-CTS that they were given, makes a folder that goes when they end, and
# counts.
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

finish() # HOW MANY must have passed
{
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ] && [ "$passed" -ge "$1" ]
}

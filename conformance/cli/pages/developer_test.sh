#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# developer_test.sh - a folder that ci/conformance has built, which is without
# tests, has them once ci/test configures it: README names the two one behind
# the other.
#
# usage: developer_test.sh FSDP-CTS
set -uo pipefail

# shellcheck source=conformance/cli/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/../checks.sh"
root=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../../..")
printf '%s\n' 'cmake_minimum_required(VERSION 3.25)' 'project(empty NONE)' \
    >"$folder/CMakeLists.txt"

configures() # OPTION ...
{
    cmake "$@" -S "$folder" -B "$folder/build" >"$folder/out" 2>&1 ||
        cat "$folder/out"
}

result 'without tests' "$(configures -DBUILD_TESTING=OFF -DFSDP_WERROR=OFF)"
result 'as developers have it' "$(configures -C "$root/ci/developer.cmake")"
for name in BUILD_TESTING FSDP_WERROR CMAKE_EXPORT_COMPILE_COMMANDS; do
    result "$name is on" "$(grep -qx "$name:BOOL=ON" \
        "$folder/build/CMakeCache.txt" || grep "^$name" \
        "$folder/build/CMakeCache.txt" || echo 'it is not there')"
done

finish 5

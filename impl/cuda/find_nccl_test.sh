#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Where the build looks for NCCL. usage: find_nccl_test.sh CMAKE
set -euo pipefail

cmake=$1
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
unset NCCL_HOME PYTHONPATH

# place NAME MINOR LIBRARY ...: a folder that has 2.MINOR's header and those.
place()
{
    local name=$1 minor=$2 library
    shift 2
    mkdir -p "$folder/$name/include" "$folder/$name/lib"
    printf '#define NCCL_%s\n' 'MAJOR 2' "MINOR $minor" 'PATCH 3' \
        >"$folder/$name/include/nccl.h"
    for library; do
        touch "$folder/$name/lib/$library"
    done
}

place toolkit 28 libnccl.so libnccl.so.2
place wheel 14 libnccl.so.2
place old 13 libnccl.so libnccl.so.2
place header 28
mkdir -p "$folder/python/nvidia"
cp -r "$folder/wheel" "$folder/python/nvidia/nccl"
cat >"$folder/look.cmake" <<'CODE'
include(${HERE}/nccl.cmake)
find_nccl(${TOOLKIT})
message(STATUS "${NCCL_INCLUDE} ${NCCL_LIBRARY} ${NCCL_WHY_NOT}")
CODE

# look WANTED [VARIABLE=VALUE ...] -- [OPTION ...]
look()
{
    local wanted=$1 said
    local -a variables=()
    shift
    while [ "$1" != -- ]; do
        variables+=("$1")
        shift
    done
    shift
    said=$(env "${variables[@]}" "$cmake" -DHERE="$here" "$@" \
        -P "$folder/look.cmake" 2>&1)
    case $said in
    *"$wanted"*) echo "ok: $wanted" ;;
    *)
        echo "'$said', not '$wanted'" >&2
        exit 1
        ;;
    esac
}

toolkit=-DTOOLKIT=$folder/toolkit
look "$folder/toolkit/include $folder/toolkit/lib/libnccl.so " -- "$toolkit"
# Who names a place gets that one, a wheel's too, and is told if it is none.
look "$folder/wheel/include $folder/wheel/lib/libnccl.so.2 " \
    NCCL_HOME="$folder/wheel" -- "$toolkit"
look "$folder/wheel/include $folder/wheel/lib/libnccl.so.2 " -- "$toolkit" \
    -DNCCL_HOME="$folder/wheel"
look "NCCL_HOME is $folder/header, which has no" \
    NCCL_HOME="$folder/header" -- "$toolkit"
# What is too old is passed over, and said if there is nothing else.
look "NCCL at $folder/old is 2.13, and 2.14 or later is needed" \
    NCCL_HOME="$folder/old" -- "$toolkit"
look "$folder/toolkit/include $folder/toolkit/lib/libnccl.so " \
    -- "$toolkit" -DNCCL_SYSTEM="$folder/old"
look "$folder/wheel/include $folder/wheel/lib/libnccl.so.2 " -- \
    -DTOOLKIT="$folder/old" -DNCCL_SYSTEM="$folder/wheel"
look "NCCL at $folder/old is 2.13, and 2.14 or later is needed" -- \
    -DTOOLKIT="$folder/old" -DNCCL_SYSTEM= -DFSDP_PYTHON=/nonexistent/python3
none=(-DTOOLKIT="$folder/header" -DNCCL_SYSTEM=)
if command -v python3 >/dev/null 2>&1; then
    look "$folder/python/nvidia/nccl/lib/libnccl.so.2 " \
        PYTHONPATH="$folder/python" -- "${none[@]}"
fi
look 'NCCL was not found beside the toolkit' -- "${none[@]}" \
    -DFSDP_PYTHON=/nonexistent/python3

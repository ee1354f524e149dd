#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The suite on the emulated GPU: the cases of the small models at K = 1 to 4,
# which have every operator, strategy, fold and scenario. Staging is small, so
# that folds take several chunks.
# usage: emulated_conformance.sh FSDP-CTS PLUGIN PATTERN [OPTION ...]
set -euo pipefail

cts=$1
plugin=$2
pattern=$3
shift 3
# The command line takes 64 cases at most: of more, some of every part.
cases=$("$cts" list cases | awk -v pattern="$pattern" '
    $0 ~ "^(" pattern ")\\." && /\.k[1-4](r[0-9]+)?\./ { of[n++] = $0 }
    END {
        take = n < 64 ? n : 64
        for (i = 0; i < take; i++)
            printf "%s%s", i ? "," : "", of[int(i * n / take)]
    }')
if [ -z "$cases" ]; then
    echo "no case matches '$pattern'" >&2
    exit 1
fi
export FSDP_CUDA_STAGING=${FSDP_CUDA_STAGING:-4096}
exec "$cts" run --engine "$plugin" --case "$cases" --timeout 120 --partial-ok \
    "$@"

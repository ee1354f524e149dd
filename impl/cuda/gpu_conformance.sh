#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The suite on GPUs, a GPU a rank. Exit 77, which CTest takes as skipped, where
# there are too few. usage: gpu_conformance.sh FSDP-CTS PLUGIN RANKS [OPTION...]
set -euo pipefail

cts=$1
plugin=$2
ranks=$3
shift 3
gpus=0
if command -v nvidia-smi >/dev/null 2>&1; then
    gpus=$(nvidia-smi --list-gpus 2>/dev/null | grep -c '^GPU ' || true)
fi
if [ "$gpus" -lt "$ranks" ]; then
    echo "skipped: $ranks ranks need as many GPUs, this machine has $gpus"
    exit 77
fi
# One worker at a time, so that the ranks of two cases share no GPU; and opening
# a GPU takes its time.
exec "$cts" run --engine "$plugin" --ranks "$ranks" --partial-ok --jobs 1 \
    --timeout 300 "$@"

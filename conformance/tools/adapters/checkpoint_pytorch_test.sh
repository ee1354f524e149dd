#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# checkpoint_pytorch_test.sh - PyTorch's distributed checkpoint and safetensors
# read the stored samples, and we what PyTorch wrote. Skips (77) where Python
# has them not: FSDP_PYTHON names one that has.
#
# usage: checkpoint_pytorch_test.sh FSDP-CTS SAMPLES
set -euo pipefail

python=${FSDP_PYTHON:-python3}
here=$(cd "$(dirname "$0")" && pwd)
if ! why=$("$python" -W ignore -c 'import numpy, safetensors.torch
from torch.distributed.checkpoint import HuggingFaceStorageReader' 2>&1); then
    echo "skip: $python: ${why##*$'\n'} (set FSDP_PYTHON)"
    exit 77
fi
exec "$python" -W ignore "$here/checkpoint_pytorch.py" "$1" "$2"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# torch_launch_test.sh - what `fsdp-cts probe --torch` does before there is a
# PyTorch: variables, what is refused, and what is run behind the
# sitecustomize.py that it has Python import.
#
# usage: torch_launch_test.sh FSDP-CTS PROBE-FOLDER PROGRAM-FOLDER [SANITIZER]
set -uo pipefail
# shellcheck source=conformance/tools/probes/probe_testing.sh
. "$(dirname "$0")/probe_testing.sh"

# launches WHAT CODE TEXT ARGUMENT...
launches()
{
    local what=$1 code=$2 text=$3 why='' got

    shift 3
    timeout 60 "$cts" probe --torch "$@" >said 2>&1
    got=$?
    if [ "$got" -ne "$code" ] || ! grep -qF -- "$text" said; then
        why="exit $got, no '$text': $(head -c 600 said)"
    fi
    result "$what" "$why"
}

launches 'no folder' 64 'needs a folder for logs and a program'
launches 'no program' 64 'needs a folder for logs and a program' logs
launches 'one that is not there' 64 './nothing: No such file' logs ./nothing
launches 'its exit code is kept' 3 three logs sh -c 'echo three; exit 3'
launches 'a folder is of here' 0 "$folder/logs" logs printenv FSDP_PROBE_LOG
launches 'or of the root' 0 /a/b /a/b printenv FSDP_PROBE_LOG
PYTHONPATH=/mine launches 'what was there stays' 0 ':/mine' logs \
    printenv PYTHONPATH
LD_PRELOAD=$probes/fsdp-probe-heap.so launches 'a preloaded object, too' 0 \
    "/fsdp-probe-torch.so:$probes/fsdp-probe-heap.so" logs printenv LD_PRELOAD
result 'none of them has left a log' "$([ ! -e logs ] || ls logs)"

finish 9 || exit 1
needs python3
mkdir site
echo 'print("the own one of this site")' >site/sitecustomize.py
PYTHONPATH=$PWD/site launches 'a sitecustomize that ours hides is run' 0 \
    'the own one of this site' logs python3 -c pass
echo 'raise ImportError("it is broken")' >site/sitecustomize.py
PYTHONPATH=$PWD/site launches 'and fails as it would' 0 'it is broken' logs \
    python3 -c pass
# What only looks like PyTorch: there is no log, and the program goes on.
mkdir -p odd/torch/distributed
echo >odd/torch/__init__.py
echo >odd/torch/distributed/__init__.py
echo 'def _new_process_group_helper(x): return x + 1' \
    >odd/torch/distributed/distributed_c10d.py
PYTHONPATH=$PWD/odd launches 'another torch' 0 'nothing is recorded' logs \
    python3 -c 'from torch.distributed import distributed_c10d as c
assert c._new_process_group_helper(1) == c._new_process_group_helper(1) == 2
assert type(c.__spec__.loader).__name__ == "SourceFileLoader"'
echo >odd/torch/distributed/distributed_c10d.py
PYTHONPATH=$PWD/odd launches 'one without the function' 0 'nothing is recorded' \
    logs python3 -c 'import torch.distributed.distributed_c10d'
result 'none of them has left a log, either' "$([ ! -e logs ] || ls logs)"

finish 14

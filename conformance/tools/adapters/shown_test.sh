#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# shown_test.sh - the scripts of shown/, each of which shows outside of the suite
# what docs/results.md and docs/faults.md say of an implementation: it prints what
# it found, and fails where it found something else.
#
# usage: shown_test.sh [SCRIPT ...]
set -uo pipefail

python=${FSDP_PYTHON:-python3}
cd "$(dirname "${BASH_SOURCE[0]}")/shown" || exit 1
"$python" -c 'import torch' 2>/dev/null || {
    echo "skip: $python has no torch (set FSDP_PYTHON)"
    exit 77
}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
bad=0
[ $# -gt 0 ] || set -- dcp*.py ddp*.py fsdp*.py keeps*.py fairscale*.py zero3*.py
for script; do
    case $script in
    fairscale*) needs=fairscale ;;
    zero3*) needs=deepspeed ;;
    *) needs=torch ;;
    esac
    if ! "$python" -c "import importlib.util as u, sys
sys.exit(u.find_spec('$needs') is None)"; then
        echo "$script: left out, $python has no $needs"
    elif "$python" -W ignore "$script" >"$log" 2>&1; then
        echo "$script: $(tail -n 1 "$log")"
    else
        echo "FAIL $script:"
        cat "$log"
        bad=1
    fi
done
exit $bad

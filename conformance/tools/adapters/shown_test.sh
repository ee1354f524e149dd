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
here=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
cd "$here/shown" || exit 1
has=$("$python" -c "import importlib.util as u
print(*(m for m in ('torch', 'fairscale', 'deepspeed') if u.find_spec(m)))")
[[ " $has " = *" torch "* ]] || {
    echo "skip: $python has no torch (set FSDP_PYTHON)"
    exit 77
}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
log=$folder/log
bad=0
# shellcheck source=conformance/tools/adapters/once.sh
. "$here/once.sh"
imported_once
[ $# -gt 0 ] || set -- dcp*.py ddp*.py fsdp*.py keeps*.py fairscale*.py zero3*.py
for script; do
    case $script in
    fairscale*) needs=fairscale ;;
    zero3*) needs=deepspeed ;;
    *) needs=torch ;;
    esac
    if [[ " $has " != *" $needs "* ]]; then
        echo "$script: left out, $python has no $needs"
    elif "$player" "$script" >"$log" 2>&1; then
        echo "$script: $(tail -n 1 "$log")"
    else
        echo "FAIL $script:"
        cat "$log"
        bad=1
    fi
done
exit $bad

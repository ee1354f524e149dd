#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# order_test.sh - orders that are planted, then those of real black boxes: the
# ring of the emulation of NCCL, and a channel of it that runs backwards, are
# found; Open MPI's order is a tree. gloo is asked where FSDP_PYTHON has torch.
#
# usage: order_test.sh FOLDER-OF-BOXES [MPIEXEC ARGUMENT...]
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=conformance/cli/checks.sh
. "$here/../../cli/checks.sh"
needs python3
boxes=$cts
shift
cd "$folder" || exit 1
export PYTHONDONTWRITEBYTECODE=1 OMPI_MCA_mpi_yield_when_idle=1

python3 "$here/order_test.py" >out 2>&1
got=$?
result 'planted orders' "$([ "$got" -eq 0 ] || cat out)"
n=1

order() # WANTED EXIT, ARGUMENT...
{
    local want=$1 got
    shift
    python3 "$here/order.py" "$@" >out 2>err
    got=$?
    [ "$got" -eq "$want" ] || echo "exit $got: $(cat err)"
}

if [ -x "$boxes/box_nccl" ]; then
    box=(--box "$boxes/box_nccl" --of NCCL --op reduce-scatter)
    result 'NCCL' "$(order 0 "${box[@]}" --ranks 4 --elements 8)"
    cat >want <<'END'
NCCL: reduce-scatter of 8 float32, 4 ranks
  0-1: up from 1, (0 + ((1 + 2) + 3))
  2-3: up from 2, ((0 + (2 + 3)) + 1)
  4-5: up from 3, (((0 + 3) + 1) + 2)
  6-7: up, (((0 + 1) + 2) + 3)
END
    result 'each part has a ring of its own' "$(diff want out)"
    result 'a channel runs backwards' "$(FSDP_EMULATED_FAULT=nccl-channels@3 \
        order 0 "${box[@]}" --ranks 4 --elements 16384)"
    result 'which is told' "$(grep -q '^  512-1023, .*: down from 3,' out ||
        cat out)"
    result 'it sums in no all-reduce' \
        "$(order 2 --box "$boxes/box_nccl" --ranks 2)"
    result 'and says so' "$(grep -q 'reduce-scatters of float32' err ||
        cat err)"
    n=$((n + 6))
fi
if [ -x "$boxes/box_mpi" ] && [ $# -gt 0 ]; then
    result 'MPI' "$(order 0 --box "$* {ranks} $boxes/box_mpi" --ranks 3 \
        --elements 6 --format bfloat16)"
    result 'a tree of three' "$(grep -q '^  .*: .*(.* + .*)' out || cat out)"
    result 'another number of ranks' \
        "$(order 2 --box "$* 2 $boxes/box_mpi" --ranks 3)"
    n=$((n + 3))
fi
if [ -n "${FSDP_PYTHON:-}" ] && "$FSDP_PYTHON" -c 'import torch' 2>/dev/null
then
    result 'gloo' "$(order 0 --box "$FSDP_PYTHON $here/box_gloo.py" --ranks 3)"
    result 'gloo: a ring' "$([ "$(grep -c ' from ' out)" -ge 2 ] || cat out)"
    n=$((n + 2))
fi
finish "$n"

# SPDX-License-Identifier: Apache-2.0
#
# adapter_testing.sh - what tests of adapters share: Python, the engine that is
# under test, what failed of it, and whether that is what should have.
# shellcheck shell=bash

# shellcheck source=conformance/cli/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../cli/checks.sh"
# shellcheck disable=SC2034  # for the tests
here=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
python=${FSDP_PYTHON:-python3}
bad=0

needs_import() # STATEMENT: where it fails in Python the test is left out
{
    local why
    why=$("$python" -W ignore -c "$1" 2>&1) ||
        skip "$python: ${why##*$'\n'} (set FSDP_PYTHON)"
}

needs_engine() # pytorch_fsdp2, ...: $import becomes what imports it
{
    case $1 in
    pytorch_fsdp2) import='from torch.distributed.fsdp import fully_shard' ;;
    pytorch_fsdp1) import='from torch.distributed.fsdp import FullyShardedDataParallel' ;;
    fairscale_fsdp) import='import fairscale' ;;
    deepspeed_zero3) import='import deepspeed' ;;
    esac
    needs_import "$import"
}

no_engine() # says what the test takes
{
    sed -n 's/^# usage/usage/p' "$0" >&2
    exit 64
}

# outcomes WORD REPORT [CASE]: the requirements with that outcome, of all cases
# or of one.
outcomes()
{
    local case=${3:+'","case":"'$3}
    sed -n "s/.*\"requirement\":\"\([^\"]*\)$case\".*\"outcome\":\"\($1\)\".*/\1/p" \
        "$2" 2>/dev/null | sort -u
}

failing() # REPORT [CASE]
{
    outcomes 'fail\|error\|timeout\|incomplete' "$@"
}

# found WHAT GOT WANT REPORT: whether what failed is what should have, and there
# is a report. What was printed is in $folder/out.
found()
{
    if [ "$2" = "$3" ] && [ -s "$4" ]; then
        echo "$1: ${2:-right}"
    else
        # shellcheck disable=SC2034  # for the tests
        bad=1
        echo "FAIL $1: found '$2', not '$3'"
        tail -n 3 "$folder/out"
    fi
}

# SPDX-License-Identifier: Apache-2.0
#
# check_testing.sh - what the tests share that need PyTorch: behind it `python`
# has torch, or the test has ended with 77 and the reason. FSDP_PYTHON names
# one that is not python3.
# shellcheck shell=bash

# shellcheck source=conformance/cli/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../cli/checks.sh"
here=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
python=${FSDP_PYTHON:-python3}

needs() # MODULE...
{
    local module

    for module in "$@"; do
        "$python" -c "import importlib.util as u, sys
sys.exit(u.find_spec('$module') is None)" || {
            echo "skipped: $python has no $module; FSDP_PYTHON names another"
            exit 77
        }
    done
}
needs torch

# shellcheck source=conformance/tools/adapters/once.sh
. "$here/../adapters/once.sh"

# says CODE TEXT ARGUMENT...: that exit code, and TEXT is printed.
says()
{
    local code=$1 text=$2 why='' got

    shift 2
    "$cts" check --python "$player" "$@" >"$folder/out" 2>"$folder/err"
    got=$?
    if [ "$got" -ne "$code" ]; then
        why="exit $got, not $code: $(head -c 600 "$folder/out" "$folder/err")"
    elif ! cat "$folder/out" "$folder/err" | grep -F -- "$text" >/dev/null; then
        why="no '$text': $(head -c 2000 "$folder/out" "$folder/err")"
    elif [ "$code" -eq 65 ] &&
        [ "$(grep -c 'fsdp-cts check' "$folder/err")" -ne 1 ]; then
        why="not one line: $(head -c 600 "$folder/err")"
    fi
    result "${PLANTED:-} ${*##*/}" "$why"
}

# planted FAULT CODE TEXT [OPTION...]: what is said of the file $planted_in with
# that fault; unless $only, words between blanks, names others.
planted()
{
    local PLANTED=$1 code=$2 text=$3

    [ "$only" = '  ' ] || [[ $only == *" $1 "* ]] || return
    export PLANTED
    shift 3
    says "$code" "$text" "$planted_in" --timeout 300 "$@"
}

# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# probe_testing.sh - what the tests of probes share; sourced, with
# FSDP-CTS PROBE-FOLDER PROGRAM-FOLDER SANITIZER as arguments.

# shellcheck disable=SC2034  # for those who source this
cts=$(realpath "$1")
probes=$(realpath "$2")
programs=$(realpath "$3")
if [ -n "${4:-}" ]; then
    echo "skipped: the $4 sanitizer defines the same functions as a probe," \
        'or has to come before it'
    exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
passed=0
failed=0
# Only what a test says.
unset FSDP_PROBE_LOG FSDP_PROBE_STEP LD_PRELOAD RANK WORLD_SIZE PMI_RANK \
    PMI_SIZE OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE SLURM_PROCID SLURM_NTASKS

result() # WHAT, why it failed or nothing
{
    if [ -z "$2" ]; then
        echo "ok   $1"
        passed=$((passed + 1))
    else
        echo "FAIL $1: $2"
        failed=$((failed + 1))
    fi
}

# mpi RANKS PRELOAD PROGRAM ARGUMENT...: under mpirun, as root if need be.
mpi()
{
    local ranks=$1 preload=$2 more=()

    shift 2
    if [ "$(id -u)" -eq 0 ]; then
        export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    fi
    export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
    [ -z "$preload" ] || more+=(-x "LD_PRELOAD=$preload")
    for name in FSDP_PROBE_LOG FSDP_PROBE_STEP FSDP_PRIVATE; do
        [ -z "${!name:-}" ] || more+=(-x "$name=${!name}")
    done
    timeout 60 mpirun -n "$ranks" "${more[@]}" "$@" >out 2>err
}

need_mpi()
{
    if ! command -v mpirun >/dev/null; then
        echo 'skipped: mpirun is not installed'
        exit 77
    fi
    if ! mpirun --version 2>&1 | grep 'Open MPI' >/dev/null; then
        echo "skipped: mpirun is not Open MPI's"
        exit 77
    fi
    if ! mpi 2 '' true; then
        echo "skipped: mpirun does not run here: $(head -c 200 err)"
        exit 77
    fi
}

# judge WHAT CODE TEXT LOG [OPTION...]: fsdp-cts probe ends with CODE, and TEXT
# is in what it says.
judge()
{
    local what=$1 code=$2 text=$3 why='' got

    shift 3
    timeout 60 "$cts" probe "$@" >said 2>&1
    got=$?
    if [ "$got" -ne "$code" ]; then
        why="exit $got, not $code: $(head -c 600 said)"
    elif ! grep -qF -- "$text" said; then
        why="'$text' is not in: $(head -c 600 said)"
    fi
    result "$what" "$why"
}

finish()
{
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ]
}

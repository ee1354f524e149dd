# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# probe_testing.sh - what the tests of probes share; sourced, with
# FSDP-CTS PROBE-FOLDER PROGRAM-FOLDER SANITIZER as arguments.

# shellcheck source=conformance/cli/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../cli/checks.sh"
# shellcheck disable=SC2034  # for those who source this
probes=$(realpath "$2") programs=$(realpath "$3")
[ -z "${4:-}" ] || skip "the $4 sanitizer has the same functions as a probe, \
or has to come before it"
cd "$folder" || exit 1
# Only what a test says.
unset FSDP_PROBE_LOG FSDP_PROBE_STEP LD_PRELOAD RANK WORLD_SIZE PMI_RANK \
    PMI_SIZE OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE SLURM_PROCID SLURM_NTASKS

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
    needs mpirun
    mpirun --version 2>&1 | grep 'Open MPI' >/dev/null ||
        skip "mpirun is not Open MPI's"
    mpi 2 '' true || skip "mpirun does not run here: $(head -c 200 err)"
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

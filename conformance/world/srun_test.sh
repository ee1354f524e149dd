#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# srun_test.sh - a world that SLURM's srun starts, on one node and on two: a
# controller, a daemon on each of two hosts (the script hosts) and munge, all of
# this test. Both engines are right there, bit for bit as processes of one host,
# and a rank that dies ends the run, with its name.
#
# usage: srun_test.sh FSDP-CTS [INCLUDE-FOLDER]
# Exits 77, with the reason, where SLURM is not installed (Debian: slurmctld,
# slurmd, slurm-client, munge), or is without PMIx, or no hosts can be had.
set -uo pipefail

here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
# shellcheck source=conformance/cli/checks.sh
. "$here/../cli/checks.sh"

cases=$(
    "$cts" list cases | awk -F. '
        $5 ~ /^k4(r2)?$/ && $1 ~ /^(mlp|linear)$/ && $11 == "" && !seen[$4]++ {
            printf "%s%s", n++ ? "," : "", $0
        }'
)

# over FOLDER NAME ENGINE NODES [OPTION ...]: the cases over so many nodes
over()
{
    local at=$1 name=$2 engine=$3 nodes=$4
    shift 4
    "$cts" run --engine "$engine" --world mpi --case "$cases" --partial-ok \
        --launcher "srun --mpi=pmix --overcommit -N $nodes -n {K}" --quiet \
        --timeout 120 --records "$at/$name" "$@" \
        >"$at/$name.out" 2>"$at/$name.err"
    echo "$?" >"$at/$name.code"
}

# answers COMMAND ...: waits until it succeeds
answers()
{
    local i
    for ((i = 0; i < 300; i++)); do
        ! "$@" >/dev/null 2>&1 || return 0
        sleep 0.1
    done
    echo "30 s: $*"
    return 1
}

# The part beside hosts.
if [ "${FSDP_SRUN-}" != "" ]; then
    at=$FSDP_SRUN
    export SLURM_CONF=$at/slurm.conf OMPI_MCA_btl_tcp_if_include=10.77.0.0/24
    hostname control
    munged --force --key-file="$at/key" --socket="$at/munge" \
        --pid-file="$at/munge.pid" --log-file="$at/munge.log" \
        --seed-file="$at/munge.seed"
    slurmctld -D -f "$SLURM_CONF" >"$at/ctld.out" 2>&1 &
    for i in 1 2; do
        "$at/on" "$i" "exec slurmd -D -f $SLURM_CONF -N host$i" \
            >"$at/slurmd.$i.out" 2>&1 &
    done
    answers sh -c "sinfo -h -t idle -o %D | grep -qx 2" >"$at/up" || exit 0
    srun -N 2 -n 4 hostname 2>&1 | sort >"$at/names"
    for engine in ref impl; do
        over "$at" "one-$engine" "$engine" 1
        over "$at" "two-$engine" "$engine" 2
    done
    over "$at" dies ref 2 --mutant hostile-crash
    answers sh -c '! pgrep --runstates D,R,S,T "^(slurmstepd|fsdp-cts)$"' \
        >"$at/left"
    scontrol shutdown >/dev/null 2>&1
    exit 0
fi

needs srun slurmctld slurmd munged mpirun
needs_hosts

at=$folder/slurm
mkdir -p "$at"/{state,{spool,tmp}.host{1,2}}
chmod 755 "$folder" "$at"
(umask 077 && head -c 1024 /dev/urandom >"$at/key")
cat >"$at/slurm.conf" <<END
ClusterName=test
SlurmctldHost=control(10.77.0.254)
SlurmUser=root
AuthInfo=socket=$at/munge
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/linear
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SlurmctldPidFile=$at/ctld.pid
SlurmdPidFile=$at/slurmd.%n.pid
SlurmdSpoolDir=$at/spool.%n
StateSaveLocation=$at/state
TmpFS=$at/tmp.%n
SlurmctldLogFile=$at/ctld.log
SlurmdLogFile=$at/slurmd.%n.log
SlurmdParameters=config_overrides
ReturnToService=2
NodeName=host1 NodeAddr=10.77.0.1 CPUs=4
NodeName=host2 NodeAddr=10.77.0.2 CPUs=4
PartitionName=all Nodes=host1,host2 Default=YES
END

result 'one host' "$("$cts" run --engine ref --case "$cases" --partial-ok \
    --quiet --records "$folder/local" 2>&1 >"$folder/out" || cat "$folder/out")"
FSDP_SRUN=$at "$here/hosts" 2 "$at" "$here/srun_test.sh" "$cts" \
    >"$folder/out" 2>&1 || result 'hosts' "$(cat "$folder/out")"
result 'both nodes have tasks' "$(
    [ "$(uniq -c "$at/names" | awk '{print $1, $2}' | paste -sd,)" = \
        '2 host1,2 host2' ] || cat "$at/up" "$at/names" "$at"/*.log)"

# same FOLDER FOLDER: every tensor, byte for byte; or what differs
same()
{
    local file n=0
    while read -r file; do
        n=$((n + 1))
        cmp "$1/$file" "$2/$file" 2>&1 || break
    done < <(cd "$1" && find . -name '*.safetensors')
    [ "$n" -ge 16 ] || echo "only $n files of tensors"
}

for engine in ref impl; do
    for nodes in one two; do
        name=$nodes-$engine
        result "$engine, nodes: $nodes" "$(
            [ "$(cat "$at/$name.code")" -eq 0 ] ||
                cat "$at/$name.out" "$at/$name.err")"
        result "$engine, nodes: $nodes: the same bits" "$(
            same "$folder/local" "$at/$name")"
    done
done
"$cts" verify "$at/dies" --case "$cases" >"$folder/out" 2>&1
result 'a rank that dies is named' "$(
    [ "$(cat "$at/dies.code")" -eq 1 ] || cat "$at/dies.code" "$at/dies.err"
    grep -q 'rank 0 was killed by signal 11' "$folder/out" ||
        grep -A4 '^error' "$folder/out")"
result 'no process is left' "$(cat "$at/left")"
finish 12

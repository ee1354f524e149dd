#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# hosts_test.sh - MPI worlds over two and four hosts, which share a folder for
# records and a network and nothing else: both engines are right there, bit for
# bit as on one host, also where a link is slow, or far; and a link that is cut,
# a host that dies, or cannot be reached, ends the run, named, with no process
# left.
#
# usage: hosts_test.sh FSDP-CTS [INCLUDE-FOLDER]
# Exits 77, with the reason, where there is no MPI, or no hosts can be had (the
# script hosts).
set -uo pipefail

here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
# shellcheck source=conformance/cli/checks.sh
. "$here/../cli/checks.sh"

# Who this test starts again, beside hosts that are there: part N FOLDER.
cases=$(
    "$cts" list cases | awk -F. '
        $5 ~ /^k4(r2)?$/ && $1 ~ /^(mlp|linear)$/ && $11 !~ /^(steps|shrink)/ {
            key = $4 " " ($11 ~ /^(|eval|clip|summon)$/)
            if (!(key in seen) && n < 6) {
                seen[key] = 1
                printf "%s%s", n++ ? "," : "", $0
            }
        }'
)
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# launcher FOLDER: what starts a world over the hosts of its file, one rank on
# each in turn. Nobody but the hosts' own network carries what is said.
launcher()
{
    local net=10.77.0.0/24
    echo "mpirun --hostfile $1/file --map-by node --mca plm_rsh_agent $1/on" \
        "--mca oob_tcp_if_include $net --mca btl_tcp_if_include $net -n {K}"
}

# over FOLDER NAME ENGINE [OPTION ...]: the cases over the hosts
over()
{
    local at=$1 name=$2 engine=$3
    shift 3
    "$cts" run --engine "$engine" --world mpi --launcher "$(launcher "$at")" \
        --case "$cases" --partial-ok --quiet --timeout 120 \
        --records "$at/$name" "$@" >"$at/$name.out" 2>"$at/$name.err"
    echo "$?" >"$at/$name.code"
}

# once_begun FOLDER PID: waits until a case of that run has begun
once_begun()
{
    until [ -n "$(find "$1" -name case.json 2>/dev/null)" ]; do
        kill -0 "$2" 2>/dev/null || return 1
        sleep 0.02
    done
}

# Processes of worlds, on all hosts, that do not end within 20 s; they may end
# a little later than the run. Those that have ended, and of which nobody has
# taken notice, are none.
none_left()
{
    local left i status

    for ((i = 0; i < 200; i++)); do
        status=0
        left=$(pgrep --runstates D,R,S,T -al '^(orted|mpirun|fsdp-cts)$') ||
            status=$?
        [ "$status" -ne 1 ] || return 0
        sleep 0.1
    done
    echo "${left:-pgrep ended with $status}"
}

# reaches FROM TO: waits until host FROM reaches host TO. A link that came back
# a moment ago still answers "no route" to the first who asks, whom Open MPI
# would give up for; a host that is there refuses a port that nobody listens at.
reaches()
{
    local i said
    for ((i = 0; i < 200; i++)); do
        said=$("$at/on" "$1" \
            "timeout 5 bash -c 'echo >/dev/tcp/10.77.0.$2/9'" 2>&1)
        [[ $said != *refused* ]] || return 0
        sleep 0.1
    done
    echo "host $1 does not reach host $2: $said"
}

# The parts that run beside hosts. They ask each other each second, and not
# each ten.
if [ "${FSDP_HOSTS-}" != "" ]; then
    at=$FSDP_HOSTS
    export OMPI_MCA_oob_tcp_keepalive_time=1 OMPI_MCA_oob_tcp_keepalive_intvl=1
    export OMPI_MCA_oob_tcp_keepalive_probes=3
    n=$(wc -l <"$at/file")
    read -r -a mpirun < <(launcher "$at" | sed "s/{K}/$n/")
    "${mpirun[@]}" hostname 2>&1 | sort >"$at/names"
    for engine in ref impl; do
        over "$at" "$engine" "$engine"
    done
    [ "$n" -eq 2 ] || exit 0
    # 8 Mbit a second, where there were gigabits.
    tc qdisc add dev e2 root tbf rate 8mbit burst 16k latency 1s \
        2>"$at/tc" && over "$at" slow ref
    tc qdisc del dev e2 root 2>/dev/null
    # And far away: 20 ms in each direction.
    export cts cases
    export -f launcher over
    "$here/late_link" e2 20 bash -c 'over "$@"' over "$at" late ref \
        >"$at/link" 2>&1
    none_left >"$at/left.late"
    # In the middle of the cases its link is cut, and comes back; then it dies.
    over "$at" cut ref --timeout 60 &
    once_begun "$at/cut" $! && ip link set e2 down
    wait $!
    none_left >"$at/left.cut"
    ip link set e2 up
    { reaches 2 1 && reaches 1 2; } >"$at/back"
    over "$at" dead ref --timeout 60 &
    once_begun "$at/dead" $! && kill -KILL "$(cat "$at/pid.2")"
    wait $!
    none_left >"$at/left.dead"
    # Nobody is at that address any more; nor at one that never was.
    over "$at" gone ref
    echo '10.77.0.99 slots=4' >"$at/file"
    over "$at" none ref
    exit 0
fi

needs mpirun
"$cts" run --engine ref --quiet --world mpi --workload linear --ranks 2 \
    --partial-ok >"$folder/out" 2>&1 ||
    skip "no MPI world: $(head -c 200 "$folder/out")"
needs_hosts

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

result 'one host' "$("$cts" run --engine ref --case "$cases" --partial-ok \
    --quiet --records "$folder/local" 2>&1 >"$folder/out" || cat "$folder/out")"

# A launcher that shows what Open MPI is told, and starts nothing.
printf '#!/bin/sh\nenv >%s/told\nexit 1\n' "$folder" >"$folder/tells"
chmod +x "$folder/tells"
"$cts" run --engine ref --case "$cases" --quiet --world mpi \
    --launcher "$folder/tells" >"$folder/out" 2>&1
result 'hosts ask each other whether they are there' "$(
    for line in time=10 intvl=5 probes=4; do
        grep -qx "OMPI_MCA_oob_tcp_keepalive_$line" "$folder/told" ||
            echo "no $line"
    done)"

for n in 2 4; do
    at=$folder/hosts-$n
    mkdir "$at"
    FSDP_HOSTS=$at "$here/hosts" "$n" "$at" "$here/hosts_test.sh" "$cts" \
        >"$folder/out" 2>&1 || result "$n hosts" "$(cat "$folder/out")"
    result "$n hosts have names of their own" "$(
        [ "$(sort -u "$at/names" | grep -c '^host[0-9]*$')" -eq "$n" ] ||
            cat "$at/names")"
    for engine in ref impl; do
        result "$engine over $n hosts" "$(
            [ "$(cat "$at/$engine.code")" -eq 0 ] ||
                cat "$at/$engine.out" "$at/$engine.err")"
    done
    result "the same bits over $n hosts" "$(same "$folder/local" "$at/ref")"
done

at=$folder/hosts-2
if [ -s "$at/tc" ]; then
    echo "no slow link here: $(cat "$at/tc")"
else
    result 'over a slow link' "$([ "$(cat "$at/slow.code")" -eq 0 ] ||
        cat "$at/slow.out" "$at/slow.err")"
    result 'the same bits over a slow link' "$(same "$folder/local" "$at/slow")"
fi
late=late
if ! command -v python3 >/dev/null; then
    late=''
    echo "no link that delays here: it takes python3"
fi
read -r held least < <(sed -n \
    's/^late_link: held \([0-9]*\) frames, each for \([0-9]*\) ms .*/\1 \2/p' \
    "$at/link")
[ -z "$late" ] || result 'over a link that delays' "$(
    { [ "${held:-0}" -ge 1000 ] && [ "${least:-0}" -ge 20 ]; } || cat "$at/link"
    [ "$(cat "$at/late.code")" -eq 0 ] || cat "$at/late.out" "$at/late.err")"
[ -z "$late" ] || result 'the same bits over a link that delays' "$(
    same "$folder/local" "$at/late")"
result 'a link that was cut comes back' "$(cat "$at/back")"
while read -r what host; do
    result "$what: the run ends, and not well" "$(
        code=$(cat "$at/$what.code")
        [ "$code" -eq 1 ] || [ "$code" -eq 2 ] || [ "$code" -eq 64 ] ||
            echo "exit code $code: $(tail -n 3 "$at/$what.err")")"
    result "$what: it names the host" "$(
        grep -qE " (node|host) $host\$" "$at/$what.err" ||
            cat "$at/$what.err")"
done <<'END'
cut 10.77.0.2
dead 10.77.0.2
gone 10.77.0.2
none 10.77.0.99
END
for what in $late cut dead; do
    result "$what: no process is left" "$(cat "$at/left.$what")"
done

finish 21

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# worlds_test.sh - the same cases in the three worlds show the same: tensors
# byte for byte, everything else but times and what the kernel says about a
# process (process_growth, new_channels), which belongs to the world.
#
# usage: worlds_test.sh FSDP-CTS [INCLUDE-FOLDER]
# Exits 77 if there is no MPI, after comparing the other two.
set -uo pipefail

# shellcheck source=conformance/cli/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cli/checks.sh"

# Two world sizes, so that MPI needs two launches only: the first case of each
# workload, strategy, number of ranks, layout, fold and optimizer there.
cases=$("$cts" list cases --ranks 3,4 | sort | awk -F. '
    {
        new = 0
        n = split("1 4 5 6 8 10", field, " ")
        for (i = 1; i <= n; i++)
            new += !seen[field[i], $field[i]]++
        if (new)
            printf "%s%s", (line++ ? "," : ""), $0
    }')
n_cases=$(tr ',' '\n' <<<"$cases" | wc -l)
result 'the selection' "$([ "$n_cases" -ge 12 ] || echo "$n_cases cases"
    for some in linear. graph. .hybrid-shard. .no-shard. .k4r2. .tree. .ring.; do
        [[ $cases = *"$some"* ]] || echo "none has $some"
    done)"

worlds='local threads'
reason=''
if ! command -v mpirun >/dev/null; then
    reason='mpirun is not installed'
elif ! "$cts" run --engine ref --quiet --world mpi --workload linear --ranks 2 \
    --partial-ok >"$folder/out" 2>&1; then
    reason="no MPI world: $(head -c 200 "$folder/out")"
else
    worlds='local threads mpi'
fi

for world in $worlds; do
    "$cts" run --engine ref --quiet --world "$world" --case "$cases" --partial-ok \
        --records "$folder/$world" >"$folder/out" 2>"$folder/err"
    got=$?
    result "the cases pass in world $world" "$([ "$got" -eq 0 ] ||
        echo "exit $got: $(head -c 300 "$folder/out" "$folder/err")")"
done

# What is compared of a rank's JSON.
plain()
{
    sed -E -e '/^ *"seconds":/d' -e '/"process_growth":/d' \
        -e '/"new_channels":/d' "$1"
}

for world in $worlds; do
    [ "$world" = local ] && continue
    n=0
    for file in "$folder"/local/*/rank-*; do
        other=$folder/$world/${file#"$folder"/local/}
        name="$world: ${file#"$folder"/local/}"
        n=$((n + 1))
        if [ ! -e "$other" ]; then
            result "$name" 'is not there'
        elif [ "${file##*.}" = safetensors ]; then
            result "$name" "$(cmp "$file" "$other" 2>&1)"
        else
            result "$name" "$(diff <(plain "$file") <(plain "$other") |
                sed -n 1,5p)"
        fi
    done
    # Both files of 3 or 4 ranks a case.
    result "$world: files" "$([ "$n" -ge "$((6 * n_cases))" ] || echo "$n")"
done

# The comparison can fail: one byte, one number.
first=$(find "$folder/local" -name 'rank-1.safetensors' | sort | sed -n 1p)
printf '\001' | dd of="$first" bs=1 seek=9 conv=notrunc 2>/dev/null
result 'a changed byte shows' "$(
    cmp -s "$first" "$folder/threads/${first#"$folder"/local/}" && echo equal)"

# Hosts have copies of their own: here rank 1 has one that is a byte longer.
if [ -z "$reason" ]; then
    { cat "$cts" && printf '\0'; } >"$folder/other"
    cat >"$folder/mixed" <<'END'
#!/bin/sh
if [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then
    shift
    exec "$(dirname "$0")/other" "$@"
fi
exec "$@"
END
    chmod +x "$folder/other" "$folder/mixed"
    "$cts" run --engine ref --world mpi --workload linear --ranks 2 \
        --launcher "mpirun -n {K} $folder/mixed" --partial-ok \
        >"$folder/out" 2>"$folder/err"
    got=$?
    result 'different builds are refused in a line' "$(
        [ "$got" -eq 64 ] || echo "exit code $got"
        [ "$(grep -c . "$folder/err")" -eq 1 ] &&
            grep -q 'rank 1 on host .* another build of fsdp-cts' \
                "$folder/err" || cat "$folder/err")"

    # What SLURM's launcher says of a task that a signal ended, and of those
    # that it ended for that; srun_test.sh has the real one, where it is.
    cat >"$folder/as-srun" <<'END'
#!/bin/sh
mpirun "$@" 2>/dev/null
echo 'srun: error: node1: task 1: Segmentation fault (core dumped)' >&2
echo 'srun: error: node1: task 0: Killed' >&2
exit 139
END
    chmod +x "$folder/as-srun"
    "$cts" run --engine ref --world mpi --workload linear --ranks 2 \
        --mutant hostile-crash --launcher "$folder/as-srun -n {K}" \
        --fail-fast --partial-ok >"$folder/out" 2>"$folder/err"
    result "a task that srun names is a rank, with its signal" "$(
        grep -q 'rank 1 was killed by signal 11' "$folder/out" ||
            grep -A4 '^error' "$folder/out" | head -c 600)"
fi

echo "$passed passed, $failed failed, $n_cases cases in: $worlds"
if [ "$failed" -ne 0 ]; then
    exit 1
fi
[ -z "$reason" ] || skip "$reason"

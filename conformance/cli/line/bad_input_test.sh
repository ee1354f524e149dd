#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# bad_input_test.sh - what is wrong on a command line, in a plug-in or in a
# folder of records is answered with one line, the exit code that
# `fsdp-cts --help` promises, and nothing half-written.
#
# usage: bad_input_test.sh FSDP-CTS INCLUDE-FOLDER
set -uo pipefail

# shellcheck source=conformance/cli/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/../checks.sh"
include=$(realpath "$2")
cd "$folder" || exit 1
export TMPDIR=$folder/tmp
mkdir tmp
case=mlp.seed.natural.full-shard.k2.flat.layer.rank.s.sgd.steps40

left_over()
{
    find . \( -name '*.partial' -o -name '.worker-*' \) -print -quit
    find tmp -mindepth 1 -print -quit
}

# refused WHAT CODE TEXT ARGUMENT...: exactly one line on stderr, with TEXT in
# it; nothing on stdout.
refused()
{
    local what=$1 code=$2 text=$3 why='' got left
    shift 3
    timeout 60 "$cts" "$@" >out 2>err
    got=$?
    left=$(left_over)
    if [ "$got" -ne "$code" ]; then
        why="exit code $got, not $code: $(head -c 300 err)"
    elif [ "$(wc -l <err)" -ne 1 ]; then
        why="$(wc -l <err) lines on stderr: $(head -c 300 err)"
    elif ! grep -qF -- "$text" err; then
        why="'$text' is not in: $(cat err)"
    elif [ -s out ]; then
        why="printed: $(head -c 200 out)"
    elif [ -n "$left" ]; then
        why="left $left"
    fi
    result "$what" "$why"
}

# ---- Names ----
refused 'no such command' 64 "unknown command 'frobnicate'" frobnicate
refused 'no such option' 64 "unknown option '--frobnicate'" run --frobnicate
refused 'an option of another command' 64 "unknown option '--batch'" \
    run --batch x
refused 'an option without its value' 64 "'--ranks' needs a value" run --ranks
refused 'what is no option' 64 "'mlp' is no option" run mlp
refused 'no such workload' 64 "unknown workload 'resnet'" run --workload resnet
refused 'one workload of two' 64 "unknown workload 'resnet'" \
    run --workload mlp,resnet
refused 'no such engine' 64 "unknown engine 'nosuch'" run --engine nosuch
refused 'no such level' 64 "unknown level 'nosuch'" run --level nosuch
refused 'a level that is too high' 64 "unknown level '99'" run --level 99
refused 'no such requirement' 64 "unknown requirement 'nosuch'" \
    run --requirement nosuch
refused 'no such requirement, to verify' 64 "unknown requirement 'nosuch'" \
    verify . --requirement nosuch
refused 'no such mutant' 64 "unknown mutant 'nosuch'" run --mutant nosuch
refused 'no such mutant, of mutants' 64 "unknown mutant 'nosuch'" \
    mutants nosuch
refused 'no such strategy' 64 "unknown strategy 'zero'" run --strategy zero
refused 'no such world' 64 "unknown world 'moon'" run --world moon
refused 'no such case' 64 "no case 'nosuch'" run --case nosuch
refused 'no such case, to verify' 64 "no case 'nosuch'" \
    verify . --case nosuch
refused 'a case outside the selection' 64 "no case '$case'" \
    run --ranks 3 --case "$case"
refused 'no such list' 64 "'nosuch'" list nosuch
refused 'no such launcher' 64 'cannot start ./no-launcher' \
    run --world mpi --launcher './no-launcher' --case "$case"
refused 'one engine twice' 64 "--engine: 'ref' is there twice" \
    run --engine ref,ref --report r.jsonl
mkdir x y
touch x/a.so y/a.so baseline.so
refused 'one name twice' 64 'two engines of one name: a' \
    run --engine ./x/a.so,./y/a.so
refused 'an engine called baseline' 64 'no engine may be called so' \
    run --engine ref,./baseline.so

# ---- Every command that has options ----
"$cts" --help | sed -n 's/^  \([a-z]*\)  *[a-z].*/\1/p' >commands
while read -r command; do
    case $command in
    init | consolidate | completion) continue ;;
    esac
    refused "$command --nonsense" 64 "unknown option '--nonsense'" \
        "$command" x --nonsense
    refused "$command -x" 64 "unknown option '-x'" "$command" -xyz
    refused "$command --hlep" 64 "did you mean '--help'?" "$command" --hlep
    refused "$command --help=yes" 64 "option '--help' takes no value" \
        "$command" --help=yes
    result "$command -h" "$("$cts" "$command" -h 2>&1 |
        diff - <("$cts" "$command" --help))"
    result "$command --help is narrow" "$("$cts" "$command" --help |
        grep -E '^(  --| {31}).{79}')"
done <commands
result 'there are commands' "$([ "$passed" -ge 80 ] || echo "$passed passed")"
while read -r command option; do
    for value in '' -1 +1 ' 1' 1x 1.5 0x1 99999999999999999999; do
        refused "$command $option '$value'" 64 \
            "$option '$value': must be a number" "$command" "$option=$value"
    done
    refused "$command $option" 64 \
        "option '$option' needs a value; see: fsdp-cts $command --help" \
        "$command" "$option"
done <<'END'
run --jobs
verify --drawn-by
list --seeds
plan --ranks
plan --sequence
probe --steps
probe --replicas
track --run
check --ranks
check --timeout
bench --samples
END
while read -r command option meant; do
    refused "$command $option ${meant}x" 64 "did you mean '$meant'?" \
        "$command" "$option" "${meant}x"
done <<'END'
run --world threads
list --workload gpt
plan --layout flat
plan --offload optimizer
plan --reduce-dtype bf16
probe --strategy no-shard
probe --dtype bf16
END

# ---- Numbers ----
for ranks in 0 -1 abc 1000 1.5 513 2x +2 0x2 99999999999999999999 '3 4'; do
    refused "--ranks '$ranks'" 64 "--ranks '$ranks'" run --ranks="$ranks"
done
refused "--ranks ''" 64 'empty' run --ranks=
refused "--ranks ','" 64 'empty' run --ranks=,
refused '65 world sizes' 64 'more than 64' \
    run --ranks="$(seq -s, 1 65)"
refused 'ranks that no mesh divides' 64 'no case' \
    run --ranks 5 --strategy hybrid-shard
refused '--timeout 0' 64 "--timeout '0'" run --timeout 0
refused '--seeds 0' 64 "--seeds '0'" run --workload graph --seeds 0
refused '--first-seed -1' 64 "--first-seed '-1'" \
    run --workload graph --seeds 1 --first-seed=-1
refused 'seeds of another workload' 64 'workload graph' \
    run --workload mlp --seeds 1
refused 'a part of a graph that is none' 64 'no size "y"' \
    run --case graph.y.natural.full-shard.k2.flat.drawn.rank.s.sgd
refused '--draw 0' 64 "--draw '0'" list scripts --draw 0
refused 'cases that are drawn' 64 'list scripts --draw 2' list cases --draw 2
refused 'a seed of nothing' 64 'the first of --draw N' list scripts --seed 3
refused '--jobs 0' 64 "--jobs '0'" run --jobs 0

# ---- Plug-ins ----
plugin() # NAME: a shared object of what is on standard input
{
    cc -std=gnu11 -shared -fPIC -I"$include" -x c - -o "$1" || exit 1
}
plugin nothing.so <<'END'
int nothing;
END
plugin null.so <<'END'
#include <stddef.h>
const void *fsdp_engine_v1(void);
const void *fsdp_engine_v1(void)
{
    return NULL;
}
END
engine() # NAME, initialisers
{
    plugin "$1" <<END
#include <fsdp/engine.h>
static const struct fsdp_engine engine = {$2};
const struct fsdp_engine *fsdp_engine_v1(void);
const struct fsdp_engine *fsdp_engine_v1(void)
{
    return &engine;
}
END
}
engine small.so '.size = 16, .abi = FSDP_ABI_VERSION'
engine abi.so '.size = sizeof engine, .abi = FSDP_ABI_VERSION + 7'
engine empty.so '.size = sizeof engine, .abi = FSDP_ABI_VERSION'
plugin crash.so <<'END'
#include <stdlib.h>
const void *fsdp_engine_v1(void);
const void *fsdp_engine_v1(void)
{
    abort();
}
END
plugin leave.so <<'END'
#include <unistd.h>
__attribute__((constructor)) static void leave(void)
{
    _exit(0);
}
END
plugin unresolved.so <<'END'
void nowhere_to_be_found(void);
const void *fsdp_engine_v1(void);
const void *fsdp_engine_v1(void)
{
    nowhere_to_be_found();
    return 0;
}
END
echo 'no shared object' >text.so
refused 'a plug-in that is missing' 64 './missing.so' run --engine ./missing.so
refused 'a plug-in that is a folder' 64 './tmp' run --engine ./tmp
refused 'a plug-in that is text' 64 './text.so' run --engine ./text.so
refused 'a plug-in without the symbol' 64 'exports no fsdp_engine_v1' \
    run --engine ./nothing.so
refused 'a plug-in that returns NULL' 64 'returned NULL' run --engine ./null.so
refused 'a plug-in of another ABI' 64 'ABI version 7' run --engine ./abi.so
refused 'a struct that is too small' 64 'struct has 16 bytes' \
    run --engine ./small.so
refused 'an engine without functions' 64 'must not be NULL' \
    run --engine ./empty.so
refused 'a plug-in that aborts' 64 'signal 6' run --engine ./crash.so
refused 'a plug-in that leaves' 64 'exited with 0' run --engine ./leave.so
refused 'a plug-in with a symbol missing' 64 'nowhere_to_be_found' \
    run --engine ./unresolved.so
refused 'a bad plug-in, to mutants' 64 'nosuch' \
    mutants gives-up --engine nosuch

# ---- Files ----
head -c 10 /dev/zero >ten
: >none
mkdir private
refused 'a text of 10 bytes' 64 'too short' run --text ten
refused 'an empty text' 64 'too short' run --text none
refused 'a text that is a folder' 64 'private' run --text private
refused 'a text that is missing' 64 'missing' run --text missing
refused 'a report in no folder' 74 'missing/r.jsonl' \
    run --report missing/r.jsonl
refused 'a report that is a folder' 74 'private' run --report private
refused 'a JUnit report that is a folder' 74 'private' run --junit private
refused 'records in no folder' 74 'missing/records' \
    run --records missing/records
refused 'records that are a file' 74 'ten' run --records ten
refused 'records with a long name' 74 'too long' \
    run --records "$(printf 'r%.0s' $(seq 1 2000))"
refused 'verify nothing' 64 'needs a folder' verify
refused 'verify a folder that is missing' 65 'missing' verify missing
refused 'verify a file' 65 'ten' verify ten

# ---- Records ----
judged() # WHAT CODE TEXT: verify of a spoiled copy says so and names TEXT
{
    local what=$1 code=$2 text=$3 why='' got
    timeout 60 "$cts" verify copy --case "$case" --partial-ok >out 2>err
    got=$?
    if [ "$got" -ne "$code" ]; then
        why="exit code $got, not $code"
    elif ! grep -qF -- "$text" out err; then
        why="'$text' is nowhere in the output"
    fi
    result "$what" "$why"
    rm -rf copy
    cp -r records copy
}

if ! "$cts" run --engine ref --quiet --case "$case" --records records \
    --partial-ok \
    >out 2>err; then
    result 'records to spoil' "$(cat err)"
fi
cp -r records copy
record=copy/$case
judged 'whole records' 0 'INCOMPLETE'
mkdir void
timeout 60 "$cts" verify void --quiet >out 2>err
got=$?
result 'verify an empty folder' "$([ "$got" -eq 65 ] || echo "exit $got"
    grep -F 'void has no records; see: fsdp-cts run --records' err >found ||
        cat err)"
for file in case.json rank-0.json rank-1.json rank-1.safetensors; do
    truncate -s 60 "$record/$file"
    judged "$file is cut" 65 "$file"
done
: >"$record/case.json"
judged 'case.json is empty' 65 'case.json'
sed -i 's/"version": 2/"version": 999/' "$record/case.json"
judged 'case.json of another version' 65 'case.json'
sed -i 's/^{/{"extra": 1,/' "$record/case.json"
judged 'case.json with an unknown field' 65 'case.json'
sed -i 's/^{/{"extra": 1,/' "$record/rank-1.json"
judged 'rank-1.json with an unknown field' 65 'rank-1.json'
head -c 5000 /dev/urandom >"$record/rank-0.json"
judged 'rank-0.json is noise' 65 'rank-0.json'
rm "$record/case.json"
judged 'case.json is missing' 65 'copy has no records'
rm "$record/rank-1.json"
judged 'rank-1.json is missing' 1 'rank 1'
rm "$record/rank-1.safetensors"
judged 'rank-1.safetensors is missing' 1 'rank 1'
rm -r copy/baseline
judged 'there are no baselines' 2 "$case"
truncate -s 60 copy/baseline/*/rank-0.json
judged 'a baseline is cut' 65 'rank-0.json'

# Files of 100 GB, nearly all of them holes: refused by their size, before they
# are read. The tensors' header is right.
mkdir sparse sparse/hub sparse/bundle sparse/checkpoint
size=$((100 << 30))
header='{"a":{"dtype":"U8","shape":[107374182400],"data_offsets":[0,107374182400]}}'
# shellcheck disable=SC2059  # it is a format: the length, as eight bytes
printf "\\x$(printf %x ${#header})\\0\\0\\0\\0\\0\\0\\0%s" "$header" \
    >sparse/a.safetensors
if truncate -s $((8 + ${#header} + size)) sparse/a.safetensors 2>err; then
    for file in report.jsonl probe.log bundle/manifest.json \
        hub/model.safetensors.index.json; do
        printf '{"type":"header"}\n' >sparse/$file
        truncate -s $size sparse/$file
    done
    cp sparse/a.safetensors "$record/rank-0.safetensors"
    printf '{"weight_map":{"a":"a.safetensors"}}' \
        >sparse/checkpoint/model.safetensors.index.json
    cp sparse/a.safetensors sparse/checkpoint/
    judged 'tensors of 100 GB in a record' 65 'have at most 8589934592'
    refused 'a report of 100 GB' 65 'over 256 MiB' report sparse/report.jsonl
    refused 'a log of 100 GB' 65 'at most 268435456 bytes' \
        probe sparse/probe.log
    refused 'a bundle with a manifest of 100 GB' 65 'at most 8388608 bytes' \
        results sparse/bundle
    refused 'tensors of 100 GB' 65 'at most 2^36' inspect sparse/a.safetensors
    refused 'an index of 100 GB' 65 'over 256 MiB' inspect sparse/hub
    refused 'an index of tensors of 100 GB' 65 'at most 2^36' \
        inspect sparse/checkpoint
fi
rm -r sparse
head -c 300000000 /dev/zero | tr '\0' ' ' | timeout 60 "$cts" report /dev/stdin \
    >out 2>err
got=$?
result 'a pipe that gives no end of a report' \
    "$([ "$got" -eq 65 ] && grep -q 'over 256 MiB' err || echo "exit $got")"

# A case that is run again must not be judged by what an earlier run left.
"$cts" run --engine ref --quiet --case "$case" --records records \
    --partial-ok --mutant hostile-crash >out 2>err
got=$?
result 'a crash over good records' "$([ "$got" -eq 1 ] || echo "exit $got")"
refused 'several engines over the records of one' 64 \
    'the records of one engine' run --case "$case" --records records
result 'nothing half-written' "$(left_over)"

finish 1

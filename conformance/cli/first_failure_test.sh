#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# first_failure_test.sh - an engine like somebody's own, wrong in the ways in
# which engines are wrong: is the first failure that is printed the cause, does
# it say what is wrong, and is it not followed by its own echoes? The engine is
# docs/example/strict_engine.cpp, with an edit for each fault.
#
# usage: first_failure_test.sh FSDP-CTS INCLUDE-FOLDER
set -uo pipefail

# shellcheck source=conformance/cli/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"
include=$(realpath "$2")
engine=$(realpath "$include/../../docs/example/strict_engine.cpp")
cd "$folder" || exit 1

if ! command -v "${CXX:-c++}" >/dev/null; then
    echo 'no C++ compiler'
    exit 77
fi

ranks=3

# wrong NAME FIRST WORDS FAILURES EDIT: the engine with that edit (of sed) fails
# FIRST first, saying WORDS, and has as many different failures.
wrong()
{
    local name=$1 first=$2 words=$3 failures=$4 edit=$5 got
    sed -E "$edit" "$engine" >"$name.cpp"
    if cmp -s "$name.cpp" "$engine"; then
        result "$name" 'the edit changes nothing'
        return
    fi
    if ! "${CXX:-c++}" -std=c++17 -shared -fPIC -O1 -ffp-contract=off \
        -I "$include" "$name.cpp" -o "$name.so" 2>err; then
        result "$name" "$(head -3 err)"
        return
    fi
    timeout 300 "$cts" run --engine "./$name.so" --workload mlp,linear \
        --ranks "$ranks" >out 2>err
    got=$?
    grep -E '^(fail|error|timeout) ' out >failed
    result "$name" "$(
        [ "$got" -eq 1 ] || echo "exit code $got"
        [ "$(sed -n '1s/^[a-z]* \([^ ]*\).*/\1/p' failed)" = "$first" ] ||
            echo "first: $(head -1 failed)"
        grep -m1 '^  what' out | grep -F -- "$words" >found || true
        [ -s found ] || grep -m1 '^  what' out
        [ "$(wc -l <failed)" -le "$failures" ] ||
            echo "$(wc -l <failed) failures: $(cut -d' ' -f2 failed | tr '\n' ' ')"
        grep -v ' cases$' err
        sed -n '/^NON-CONFORMANT/{n;p;}' out
    )"
}

wrong padding-owned run.completes \
    "initial: 171 elements of layers.0.weight from 342 on, but it has 512" 1 \
    's/uint64_t last = std::min\(.*/uint64_t last = low + chunk;/'
wrong padding-always layout.chunk-rule \
    'rank 0 reports [0,8) of layers.1.weight, should own [0,7)' 4 \
    's/\+ \(x\.numel % s->shards != 0\)/+ 1/'
wrong padding-unset comm.padding-zero \
    'fill the tail of each flat parameter' 1 \
    's/return fill_zero\(s, x\.grad\)/return FSDP_OK/'
wrong not-resharded comm.all-gather-count \
    'collective 5 is a reduce-scatter of unit layers.3, expected an all-gather' 4 \
    '/^int close_window/,/^}/{s/^    reshard\(s, u\);/    if (backward) reshard(s, u);/}'
wrong sync-ignored accumulate.no-sync \
    'equals the sum of a fold for each microbatch' 6 \
    's/if \(!backward \|\| !s->sync\)/if (!backward)/'
wrong scaled-first accumulate.no-sync \
    'equals the fold of gradients that were each scaled before it' 2 \
    '/^int reduce_into/,/^}/{
        s/^    const Unit &x = .*/&\
    FSDP_TRY(run(s, FSDP_OP_SCALE, x.chunk * s->shards, x.scale, 0.0f,\
                 x.grad.p, nullptr, x.grad.p));/
        s/return run\(.*/return FSDP_OK;/}'
wrong reduced-twice accumulate.interleaved \
    'equals folds that take again what an earlier one has taken' 5 \
    '/^int close_window/,/^}/{s/^    drop\(.*//;s/^        p\.acc.*//;s/^    for .*/    {/}
     /^int step/,/^}/s/if \(x\.grad\.p\)/if (false)/'
wrong rate-of-world step.sgd \
    'is what it should be, times 3' 5 \
    's/FSDP_OP_SGD, own\.n, how->lr\[0\],/FSDP_OP_SGD, own.n, how->lr[0] * (float)s->env->world,/'
wrong counts-bytes run.completes \
    "all-gather of unit 0, n 684: 'in', 2736 bytes, ends 2052 bytes beyond" 2 \
    's/c\.n = s->unit\[u\]\.chunk;/c.n = s->unit[u].chunk * 4;/'
wrong range-too-long run.completes \
    'fill: out[0], 688 bytes, ends 4 bytes beyond its allocation; in shard' 1 \
    's/op\.out\[0\]\.bytes = n \* sizeof \*y;/op.out[0].bytes = n * sizeof *y + 4;/'
wrong freed-early run.completes \
    "reduce-scatter of unit 3, n 43: 'in' is NULL; at step 0, post-backward of" 2 \
    '/^int close_window/,/^}/s/^    reshard.*/&\
    if (backward) drop(s, \&s->unit[u].grad);/'
wrong collective-left-out run.completes \
    'rank 0: reduce-scatter n 171 (no. 11); rank 1: all-gather n 171 (no. 11)' 2 \
    '/^int reduce_into/,/^}/s/if \(s->shards > 1\)/if (s->shards > 1 \&\& !(s->env->rank == 1 \&\& u == 0))/'
ranks=4
wrong says-nothing error.says-why 'step-groups: refused, but env->error lacks' 1 \
    '/^int step/,/^}/{/if \(s->sequence/,/}/s/return fail\(.*/return FSDP_ERR_INVALID;/;s/^ *"step: in a pass.*//}'
ranks=3
wrong dies run.survives '(SIGSEGV)' 2 \
    's/^    does = .*/    if (i == 5) *(volatile int *)nullptr = 0;\
&/'

finish 14

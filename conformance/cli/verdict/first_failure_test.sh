#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# first_failure_test.sh - an engine like somebody's own, wrong in the ways in
# which engines are wrong: is the first failure that is printed the cause, does
# it say what is wrong, and is it not followed by its own echoes? The engine is
# docs/example/first_engine.c, with an edit for each fault.
#
# usage: first_failure_test.sh FSDP-CTS INCLUDE-FOLDER
set -uo pipefail

# shellcheck source=conformance/cli/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/../checks.sh"
include=$(realpath "$2")
engine=$(realpath "$include/../../docs/example/first_engine.c")
cd "$folder" || exit 1

needs "${CC:-cc}"

ranks=3
more=()

# wrong NAME FIRST WORDS FAILURES EDIT: the engine with that edit (of sed) fails
# FIRST first, saying WORDS, and has as many different failures.
wrong()
{
    local name=$1 first=$2 words=$3 failures=$4 edit=$5 got
    sed -E "$edit" "$engine" >"$name.c"
    if cmp -s "$name.c" "$engine"; then
        result "$name" 'the edit changes nothing'
        return
    fi
    if ! "${CC:-cc}" -std=c11 -shared -fPIC -O1 -ffp-contract=off \
        -I "$include" "$name.c" -o "$name.so" 2>err; then
        result "$name" "$(head -3 err)"
        return
    fi
    timeout 300 "$cts" run --engine "./$name.so" --workload mlp,linear \
        --ranks "$ranks" "${more[@]}" >out 2>err
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
        grep -Ev '^[a-z./-]+: [0-9]+ of [0-9]+ cases' err
        sed -n '/^NON-CONFORMANT/{n;p;}' out
    )"
}

wrong padding-owned run.completes \
    "initial: 171 elements of layers.0.weight from 342 on, but it has 512" 1 \
    's/(uint64_t to =) .*/\1 low + chunk;/'
wrong padding-always layout.chunk-rule \
    'rank 0 reports [0,8) of layers.1.weight, should own [0,7)' 4 \
    's/\+ \(u->numel % s->shards != 0\)/+ 1/'
wrong padding-unset comm.padding-zero \
    'fill the tail of each flat parameter' 1 \
    's/fsdp_make_zero\(s->env, FSDP_GRAD_FULL/fsdp_make(s->env, FSDP_GRAD_FULL/'
wrong not-resharded comm.all-gather-count \
    'collective 5 is a reduce-scatter of unit layers.3, expected an all-gather' 4 \
    '/^static int close_window/,/^}/s/^    reshard/    if (backward) reshard/'
wrong sync-ignored comm.reduce-scatter-count \
    'is a reduce-scatter of unit layers.3, expected an all-gather of' 6 \
    's/if \(!backward \|\| !s->sync\)/if (!backward)/'
wrong scaled-first reduce.fold \
    'equals the fold of gradients that were each scaled before it' 3 \
    '/^static int reduce_into/,/^}/{
        s/^    const struct unit \*u = .*/&\
    FSDP_TRY(fsdp_run(s->env, FSDP_OP_SCALE, u->chunk * s->shards,\
                      1.0f \/ u->divide, 0.0f, u->grad, NULL, u->grad));/
        s/1\.0f \/ u->divide, 0\.0f, to,$/1.0f, 0.0f, to,/}'
wrong reduced-twice accumulate.interleaved \
    'equals folds that take again what an earlier one has taken' 5 \
    '/^static int close_window/,/^}/{
        s/^    fsdp_drop.*//
        s/s->parameter\[p\]\.unit != unit;/true;/}
     /^static int check_step/,/^}/s/if \(s->unit\[i\]\.grad\)/if (false)/'
wrong rate-of-world step.sgd \
    'is what it should be, times 3' 5 \
    's/how->lr\[0\], decay/how->lr[0] * (float)s->env->world, decay/'
wrong counts-bytes run.completes \
    "all-gather of unit 0, n 684: 'in', 2736 bytes, ends 2052 bytes beyond" 2 \
    's/unit, u->chunk, u->(shard|grad), /unit, u->chunk * 4, u->\1, /'
wrong range-too-long run.completes \
    'fill: out[0], 688 bytes, ends 4 bytes beyond its allocation; in shard' 1 \
    '/^static int shard/,/^}/s/^    FSDP_TRY\(env->device->sync/\
    FSDP_TRY(fsdp_run(env, FSDP_OP_FILL, s->unit[0].chunk + 1, 0.0f, 0.0f,\
                      NULL, NULL, s->unit[0].shard));\
&/'
wrong freed-early run.completes \
    "reduce-scatter of unit 3, n 43: 'in' is NULL; at step 0, post-backward of" 2 \
    '/^static int close_window/,/^}/s/^    reshard.*/&\
    if (backward) fsdp_drop(s->env, \&u->grad, u->chunk * s->shards);/'
wrong collective-left-out run.completes \
    'rank 0: reduce-scatter n 171 (no. 11); rank 1: all-gather n 171 (no. 11)' 2 \
    '/^static int reduce_into/,/^}/s/if \(s->shards == 1\)/if (s->shards == 1 || (s->env->rank == 1 \&\& unit == 0))/'
ranks=1
wrong says-nothing error.says-why 'step-groups: refused, but env->error lacks' 1 \
    '/^static int check_step/,/^}/{/if \(s->walk/,/}/s/return fail\(.*/return FSDP_ERR_INVALID;/;s/^ *"step: in a pass.*//}'
ranks=3
wrong dies run.survives '(SIGSEGV)' 2 \
    '/^static int pass/,/^}/s/^    if \(unit != FSDP_NO_UNIT \&\& !s->unit/    if (s->walk.next == 6) *(volatile int *)NULL = 0;\
&/'

more=(--script $'script 1\n--\npass 0.0 s\nlook\n')
wrong another-fold script.collectives \
    'reduce-scatter of unit layers.3 with another fold, expected a reduce-scatter' 4 \
    's/s->fold, unit, u->chunk, u->grad/FSDP_FOLD_RING, unit, u->chunk, u->grad/'

finish 15

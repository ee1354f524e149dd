#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# debug_test.sh - from a failure to a line of the engine's source: where ranks
# stood, what they printed, a program around them, gdb on one of them; and that
# docs/debugging.md shows what the program prints.
#
# usage: debug_test.sh FSDP-CTS INCLUDE-FOLDER
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=conformance/cli/checks.sh
. "$here/../checks.sh"
needs cc addr2line
# shellcheck source=conformance/cli/pages/page_blocks.sh
. "$here/../pages/page_blocks.sh"
include=$(realpath "$2")
cd "$folder/root" || exit 1
one=(--case mlp.seed.natural.full-shard.k2.flat.layer.rank.s.sgd.div3)

# has WHAT FILE TEXT...: each text is in the file.
has()
{
    local what=$1 file=$2 why=''
    shift 2
    for text in "$@"; do
        grep -qF -- "$text" "$file" || why="no '$text' in: $(head -c 1500 "$file")"
    done
    result "$what" "$why"
}

# lacks WHAT FILE TEXT
lacks()
{
    result "$1" "$(grep -F -- "$3" "$2" | head -3)"
}

# engine NAME FLAW [FLAG...]: the first example; the flaw begins `reduce`.
engine()
{
    local name=$1 flaw=$2
    shift 2
    sed "/^static int reduce(/,/^}/ s/int status;/int status; $flaw/" \
        docs/example/first_engine.c >"build/$name.c"
    cc "$@" -std=gnu11 -ffp-contract=off -fPIC -shared -I "$include" \
        "build/$name.c" -o "build/$name.so"
}

# Whether gdb can be put on a process here, and valgrind runs.
can_debug()
{
    command -v gdb >/dev/null || return 1
    # It has none of this script's output, whose end others wait for.
    sleep 60 >/dev/null 2>&1 &
    local pid=$!
    gdb -batch -p "$pid" -ex 'print 6 * 7' 2>/dev/null </dev/null |
        grep -q '= 42'
    local code=$?
    kill "$pid" 2>/dev/null
    return $code
}

# ---- What ranks have to say -----------------------------------------------
engine crash 'if (s->env->rank == 1) { printf("grain %u\\n", unit); fflush(stdout); *later = 0; }' -g
"$cts" run --engine build/crash.so "${one[@]}" --records build/crash \
    --report crash.jsonl --junit crash.xml >out 2>err
has 'a crash names the line' out 'rank 1 was killed by signal 11' \
    'rank 1 printed: grain 3' 'rank 1, ended by signal 11, stood in' \
    '#0 reduce (crash.c:236)' 'rank 0 then stood in'
has 'so does JUnit' crash.xml '<system-out>rank 1 printed: grain 3' \
    '#0 reduce (crash.c:236)' 'name="verdict" value="NON-CONFORMANT"'
result 'once, and not in each test case' \
    "$([ "$(grep -c '<system-out>' crash.xml)" = 1 ] || echo 'more often')"
has 'it stands beside the record' \
    "build/crash/${one[1]}/told.txt" 'rank 1 printed: grain 3'
result 'nothing of a rank is left there' \
    "$(find build/crash -name '*.stack')"
"$cts" report crash.jsonl --records build/crash --html crash.html >out 2>err
has 'the page has it' crash.html '<pre>rank 1 printed: grain 3' \
    '#0 reduce (crash.c:236)'
"$cts" verify build/crash "${one[@]}" >out 2>err
has 'verify tells it' out '#0 reduce (crash.c:236)'
"$cts" run --engine build/crash.so "${one[@]}" --isolate >out 2>err
has 'under --isolate, too' out '#0 reduce (crash.c:236)'
cc -g -std=gnu11 -ffp-contract=off -fPIC -shared -I "$include" -s \
    build/crash.c -o build/bare.so
"$cts" run --engine build/bare.so "${one[@]}" >out 2>err
has 'without symbols there are offsets' out '#0 bare.so+0x'
mkdir empty
PATH=$folder/root/empty "$cts" run --engine build/crash.so "${one[@]}" \
    >out 2>err
has 'without addr2line, too' out '#0 crash.so+0x'

# The stack is used up where the handler would run.
engine deep 'volatile char much[1 << 14]; much[unit] = 1; if (s->env->rank == 1) return reduce(s, unit) + much[unit];' -g
"$cts" run --engine build/deep.so "${one[@]}" >out 2>err
has 'a stack that ran over' out 'rank 1, ended by signal 11' \
    '#1 reduce (deep.c:236)'
engine abort 'if (s->env->rank == 1) { signal(SIGABRT, SIG_IGN); abort(); }' \
    -g -include signal.h
"$cts" run --engine build/abort.so "${one[@]}" >out 2>err
has 'a signal that the engine has taken is what it was' out \
    'rank 1 was killed by signal 6 (SIGABRT)'
engine leave 'if (s->env->rank == 1) exit(3);' -g
"$cts" run --engine build/leave.so "${one[@]}" >out 2>err
has 'of one that left, where the others were' out 'rank 1 left with exit(3)' \
    'rank 0 then stood in'
engine doze 'if (s->env->rank == 1) { static int n; if (n++ == 2) sleep(100); }' \
    -g -include unistd.h
"$cts" run --engine build/doze.so "${one[@]}" --timeout 1 >out 2>err
has 'one that sleeps is not woken' out 'rank 1 made no progress' \
    'reduce (doze.c:236)'
# An options case offers many models: which one was it?
sed 's/^    \*out = s;/&\n    if (env->mesh->extent[1] > env->world) abort();/' \
    docs/example/first_engine.c >build/offered.c
cc -g -std=gnu11 -ffp-contract=off -fPIC -shared -I "$include" \
    build/offered.c -o build/offered.so
"$cts" run --engine build/offered.so --case "${one[1]%.div3}.options" >out 2>err
has 'a crash in a wrong call says in which' out \
    'ended by signal 6, in the wrong call shards-do-not-divide, stood in' \
    'shard (offered.c:'
engine fine 'printf("%u\\n", unit);' -g
"$cts" run --engine build/fine.so "${one[@]}" --junit fine.xml >out 2>err
result 'one that is right passes' "$([ $? = 0 ] || cat out)"
lacks 'and is not told of' out 'printed:'
lacks 'nor in JUnit' fine.xml '<system-out>'

# ---- A program around ranks -----------------------------------------------
cat >nine.c <<'END'
#include <sys/syscall.h>
#include <unistd.h>
void _exit(int code)
{
    (void)code;
    for (;;)
        syscall(SYS_exit_group, 9);
}
END
cc -fPIC -shared nine.c -o nine.so
"$cts" run --engine build/fine.so "${one[@]}" --wrap env >out 2>err
result 'a program that finds nothing' "$([ $? = 0 ] || cat out)"
"$cts" run --engine build/fine.so "${one[@]}" --report nine.jsonl \
    --wrap "env LD_PRELOAD=$PWD/nine.so" >out 2>err
result 'one that finds something is in the exit code' \
    "$([ $? = 1 ] || tail -1 out)"
has 'and in the finding' out 'rank 0 left with exit(9)' \
    "told   ranks ran under 'env LD_PRELOAD=" '--wrap '
result 'not in the unsharded run' "$(grep '^baseline: .*failed' err)"
"$cts" run --from nine.jsonl --failed --engine build/fine.so >out 2>err
result 'a report starts no program' "$([ $? = 64 ] || cat out err)"
has 'and says so' err "is not started because a file says so; give --wrap"

# ---- What cannot be -------------------------------------------------------
# refused WHAT TEXT OPTION...
refused()
{
    local what=$1 text=$2
    shift 2
    "$cts" run --engine build/fine.so "$@" >out 2>err
    result "$what" "$({ [ $? = 64 ] && [ "$(wc -l <err)" = 1 ] && [ ! -s out ] &&
        grep -qF -- "$text" err; } || head -c 300 err)"
}
refused 'no such rank' 'the case has ranks 0 to 1' "${one[@]}" --debug 2
refused 'a rank that is no number' 'must be a number' "${one[@]}" --debug x
refused 'more than one case' 'is about one case' --workload mlp --debug 0
refused 'two engines' 'is about one engine' "${one[@]}" --engine ref --debug 0
refused 'isolated ranks' 'goes with none of' "${one[@]}" --debug 0 --isolate
refused 'threads' 'goes with none of' "${one[@]}" --wrap env --world threads
refused 'both' 'one or the other' "${one[@]}" --debug 0 --wrap env
refused 'no such program' "needs 'nosuch'" "${one[@]}" --wrap 'nosuch -q'
PATH=$folder/root/empty "$cts" run --engine build/fine.so "${one[@]}" \
    --debug 0 >out 2>err
result 'no gdb' "$({ [ $? = 64 ] && [ "$(wc -l <err)" = 1 ] &&
    grep -qF "needs 'gdb', which is not there" err; } || cat err)"

# ---- gdb, and the page ----------------------------------------------------
left_out=''
if ! command -v valgrind >/dev/null; then
    echo 'valgrind is not here: its part of the page is not tried'
    left_out='valgrind'
fi
if can_debug; then
    printf '%s\n' 'break fine.c:236 if unit == 2' continue 'print unit + 40' \
        delete continue | "$cts" run --engine build/fine.so "${one[@]}" \
        --timeout 1 --debug 1 >out 2>err
    result 'gdb on a rank, and the case passes' "$([ $? = 0 ] || cat out err)"
    has 'it stopped where it was asked to' out '$1 = 42' \
        'all of it passed'
    printf '%s\n' detach 'shell sleep 3' quit | "$cts" run \
        --engine build/fine.so "${one[@]}" --timeout 1 --debug 0 >out 2>err
    result 'a rank goes on where gdb lets it go' "$([ $? = 0 ] || cat out err)"
    mkdir broken
    printf '#!/bin/sh\nexit 1\n' >broken/gdb
    chmod +x broken/gdb
    PATH=$folder/root/broken:$PATH "$cts" run --engine build/fine.so \
        "${one[@]}" --debug 1 >out 2>err </dev/null
    result 'a gdb that cannot keeps nobody' "$([ $? = 0 ] || cat out err)"
else
    echo 'gdb is not here, or not allowed to look at a process'
    left_out=${left_out:+$left_out|}--debug
fi
blocks "$root/docs/debugging.md"
run_blocks "$left_out"
finish 38

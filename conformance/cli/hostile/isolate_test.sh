#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# isolate_test.sh - what isolated ranks may do, and may not: an engine that is
# right stays right; one whose library tries something while it is loaded is
# found; files elsewhere are out of reach.
#
# usage: isolate_test.sh FSDP-CTS INCLUDE-FOLDER
set -uo pipefail

# shellcheck source=conformance/cli/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/../checks.sh"
include=$2
right=$(realpath "$(dirname "$cts")/../lib/fsdp-ref.so")
id=mlp.seed.natural.full-shard.k2.flat.layer.rank.s.sgd.steps40
[ -f "$right" ] || skip "there is no $right"

run() # ENGINE OPTION...: sets code
{
    local engine=$1
    shift
    rm -rf "$folder/records"
    code=0
    timeout 100 "$cts" run --engine "$engine" --case "$id" --partial-ok \
        --records "$folder/records" "$@" >"$folder/out" 2>"$folder/err" ||
        code=$?
}

# engine NAME: the reference, and what stdin says.
engine()
{
    cat >"$folder/$1.c" <<END
#include <dlfcn.h>
#include <fsdp/engine.h>
const struct fsdp_engine *fsdp_engine_v1(void);
const struct fsdp_engine *fsdp_engine_v1(void)
{
    const struct fsdp_engine *(*get)(void);
    void *library = dlopen("$right", RTLD_NOW | RTLD_LOCAL);

    *(void **)&get = library ? dlsym(library, "fsdp_engine_v1") : 0;
    return get ? get() : 0;
}
$(cat)
END
    cc -std=gnu11 -shared -fPIC -I"$include" -I"$include/.." "$folder/$1.c" \
        -o "$folder/$1.so" || exit 1
}

run "$right" --isolate --verbose
! grep -q 'not isolated' "$folder/err" ||
    skip "$(grep 'not isolated' "$folder/err")"
result 'a right engine stays right' "$([ "$code" = 0 ] || tail -n 3 "$folder/out")"
result 'what was carried is what is recorded' "$(
    grep -Eq '^comm.as-carried +MUST +comm +1 ' "$folder/out" ||
        grep comm.as-carried "$folder/out")"
result 'so does the report' "$(
    grep -q '^ranks were isolated: limits$' "$folder/out" || echo 'it does not')"
result 'the record names the isolation' "$(grep -q '"isolation": "limits"' \
    "$folder/records/$id/case.json" || echo 'it does not')"
run "$right"
result 'without it the report names none' "$(grep 'isolated' "$folder/out")"
result 'nor does the record' "$(grep -s '"isolation"' \
    "$folder/records/$id/case.json")"
result 'and no call is said to be none, nothing to be carried' "$(
    grep -E 'run.no-forbidden-call|comm.as-carried' "$folder/out"
    grep -s '"traffic"' "$folder/records/$id/case.json")"

# A whole run does so by itself. It stops at the first case that fails.
whole() # OPTION...
{
    code=0
    timeout 100 "$cts" run --engine "$right" --mutant divide-twice \
        --fail-fast --script-seed 1 "$@" >"$folder/out" 2>"$folder/err" ||
        code=$?
}
whole
result 'a whole run isolates ranks by itself' "$(
    grep -q '^ranks were isolated: limits$' "$folder/out" || echo 'it does not'
    grep -q '  rerun  .* --isolate ' "$folder/out" || grep rerun "$folder/out")"
whole --no-isolate
result 'unless it is told not to' "$(grep 'isolate' "$folder/out" "$folder/err")"
whole --world threads
result 'where it cannot it says why, once' "$(
    [ "$(grep -c 'not isolated: ranks are no processes' "$folder/err")" = 1 ] ||
        cat "$folder/err")"
whole --isolate --no-isolate
result 'both at once are refused' "$(
    [ "$code" = 64 ] || echo "exit $code"
    grep -q 'say the opposite' "$folder/err" || cat "$folder/err")"

# A case that is weighed.
once=$id
id=mlp.seed.natural.full-shard.k4.flat.layer.rank.s.sgd.steps40
run "$right" --isolate --verbose
if grep -q '"weight"' "$folder/records/$id/case.json"; then
    result 'what its processes hold is within bounds' "$(
        [ "$code" = 0 ] || tail -n 3 "$folder/out"
        for name in private-rest private-peak private-steady private-files \
            bounded; do
            grep -Eq "^memory.$name +(MUST|SHOULD) +memory +1 " "$folder/out" ||
                echo "no memory.$name"
        done)"
    run "$right" --verbose
    result 'without isolation nothing is weighed' "$(
        grep '"weight"' "$folder/records/$id/case.json"
        grep -E '^memory.(private-|bounded).* 1 ' "$folder/out")"
else
    result 'this kernel does not say what processes hold' ''
    result 'and nothing is asked of it' "$(
        grep -E '^memory.(private-|bounded).* 1 ' "$folder/out")"
fi
id=$once

engine talks <<'END'
#include <sys/socket.h>
#include <unistd.h>
__attribute__((constructor)) static void talk(void)
{
    close(socket(AF_UNIX, SOCK_STREAM, 0));
}
END
run "$folder/talks.so"
result 'a constructor passes without it' "$([ "$code" = 0 ] || echo "exit $code")"
run "$folder/talks.so" --isolate
result 'a constructor that opens a socket is found' "$(
    [ "$code" = 1 ] || echo "exit $code"
    grep -q '^fail run.no-forbidden-call' "$folder/out" || echo 'it is not'
    grep -q 'asked for socket(0x1, 0x1,' "$folder/out" || echo 'by another call')"

engine notes <<END
#include <fcntl.h>
#include <unistd.h>
__attribute__((constructor)) static void note(void)
{
    close(open("$folder/noted", O_WRONLY | O_CREAT, 0666));
    close(open("/dev/shm/fsdp-cts-$$", O_WRONLY | O_CREAT, 0666));
}
END
run "$folder/notes.so" --isolate
result 'a file elsewhere cannot be made' "$([ "$code" = 0 ] || tail -n 3 "$folder/out"
    ls "$folder/noted" "/dev/shm/fsdp-cts-$$" 2>/dev/null)"
run "$folder/notes.so"
result 'without it the file is made' "$(ls "$folder/noted" >/dev/null 2>&1 ||
    echo 'it is not')"
rm -f "/dev/shm/fsdp-cts-$$"

# wrapped NAME: as `engine`, and what `change` on stdin makes of it.
wrapped()
{
    engine "$1"
    sed -i 's/return get ?/extern const struct fsdp_engine *wrap(const void *); return get ? wrap(get()) : 0; return get ?/' \
        "$folder/$1.c"
    cat >>"$folder/$1.c" <<'END'
const struct fsdp_engine *wrap(const void *);
const struct fsdp_engine *wrap(const void *e)
{
    static struct fsdp_engine wrapped;
    real = e;
    wrapped = *real;
    change(&wrapped);
    return &wrapped;
}
END
    cc -std=gnu11 -shared -fPIC -I"$include" -I"$include/.." "$folder/$1.c" \
        -o "$folder/$1.so" || exit 1
}
gathers_more='static const struct fsdp_engine *real;
static const struct fsdp_comm *given;
static int gather(struct fsdp_stream *s)
{
    float one = 1, all[8];
    struct fsdp_collective c = {.size = sizeof(c), .kind = FSDP_ALL_GATHER,
        .dim = 1, .dtype = FSDP_DTYPE_F32, .n = 1, .in = &one, .out = all};
    return given->run(given->self, s, &c);
}'

# One that says that it needs what is refused.
wrapped has-devices <<'END'
#include <unistd.h>
#include <sys/socket.h>
static const struct fsdp_engine *real;
static void change(struct fsdp_engine *e)
{
    static const char *claims[128];
    unsigned n = 0;

    while (n < 126 && e->claims[n]) {
        claims[n] = e->claims[n];
        n++;
    }
    claims[n] = "devices";
    e->claims = claims;
}
__attribute__((constructor)) static void talk(void)
{
    close(socket(AF_UNIX, SOCK_STREAM, 0));
}
END
run "$folder/has-devices.so" --isolate
result 'one that claims devices is not isolated, and the run says so' "$(
    [ "$code" = 0 ] || tail -n 3 "$folder/out"
    grep -q 'not isolated: .*has-devices.so claims devices' "$folder/err" ||
        cat "$folder/err"
    grep -s '"isolation"' "$folder/records/$id/case.json")"

# The communicator that it brings hands each collective on, and sends more.
wrapped gathers <<END
$gathers_more
static struct fsdp_comm own;
static int more(void *self, struct fsdp_stream *s,
                const struct fsdp_collective *c)
{
    int status = given->run(self, s, c);
    return status ? status : gather(s);
}
static int open_with_more(struct fsdp_env *env)
{
    int status = real->open(env);
    given = env->comm;
    own = *given;
    own.run = more;
    env->comm = &own;
    return status;
}
static void change(struct fsdp_engine *e) { e->open = open_with_more; }
END
run "$folder/gathers.so" --isolate
result 'a communicator of its own that sends more is found' "$(
    [ "$code" = 1 ] || echo "exit $code"
    grep -q '^fail comm.as-carried' "$folder/out" || tail -n 5 "$folder/out")"

# What it sends beside the recorder it tells the process that counts, by
# itself, in words that leave the record as it was.
wrapped forges-words <<END
$gathers_more
#include "run/witness/crossing.h"
#include "run/witness/rank_line.h"
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
static int open_kept(struct fsdp_env *env)
{
    given = env->comm;
    return real->open(env);
}
static void forge(void)
{
    struct {
        struct crossing_head told;
        struct record_collective what;
        struct crossing_head mark;
    } f = {{CROSSING_COLLECTIVE, 0, 1},
           {.kind = FSDP_ALL_GATHER, .dim = 1, .dtype = FSDP_DTYPE_F32, .n = 1},
           {CROSSING_MARK, 0, 0}};
    const struct rank_line_said said = {RANK_LINE_DRAIN, 0, sizeof(f)};
    struct stat s;
    uint32_t back;
    for (int fd = 3; fd < 64; fd++)
        if (fstat(fd, &s) == 0 && S_ISFIFO(s.st_mode) &&
            write(fd, &f, sizeof(f)) < 0)
            continue;
    for (int fd = 3; fd < 64; fd++)
        if (fstat(fd, &s) == 0 && S_ISSOCK(s.st_mode) &&
            write(fd, &said, sizeof(said)) > 0 && read(fd, &back, 4) < 0)
            continue;
}
static int at_begin(struct fsdp_sharded *s, uint32_t point, uint32_t index)
{
    static int passes;
    if (point == FSDP_BEGIN && ++passes > 3 && gather(0) == 0)
        forge();
    return real->at(s, point, index);
}
static void change(struct fsdp_engine *e)
{
    e->open = open_kept;
    e->at = at_begin;
}
END
run "$folder/forges-words.so" --isolate
result 'what is told past the recorder is not in the record, and found' "$(
    [ "$code" = 1 ] || echo "exit $code"
    grep -A 5 '^fail comm.as-carried' "$folder/out" |
        grep -q 'were carried; in the rank' || cat "$folder/out")"

engine modes <<'END'
#include <fenv.h>
__attribute__((constructor)) static void rounds(void)
{
    (void)fesetround(FE_UPWARD);
}
END
for option in --isolate --quiet; do
    run "$folder/modes.so" "$option"
    result "a constructor that changes modes is found ($option)" "$(
        [ "$code" = 1 ] || echo "exit $code")"
done
engine dies <<'END'
__attribute__((constructor)) static void leave(void)
{
    __builtin_trap();
}
END
run "$folder/dies.so" --isolate
result 'a library that dies as it is loaded gives no verdict' "$(
    [ "$code" -gt 1 ] && [ "$code" -lt 124 ] || echo "exit $code"
    grep -q 'was ended by signal' "$folder/err" || tail -n 2 "$folder/err")"

# What ranks alone can do: where an engine is asked what it is, nothing can be
# written.
in_rank='#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static int is_rank(void)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/mark-XXXXXX", getenv("TMPDIR"));
    return mkstemp(path) >= 0;
}'
engine makes <<END
$in_rank
__attribute__((constructor)) static void say(void)
{
    if (is_rank())
        fprintf(stderr, "has a temporary file\n");
}
END
run "$folder/makes.so" --isolate
result 'a temporary file can be made' "$([ "$code" = 0 ] || tail -n 3 "$folder/out"
    grep -q 'has a temporary file' "$folder/err" || echo 'it is not')"

engine forges <<END
$in_rank
#include <fcntl.h>
__attribute__((constructor)) static void forge(void)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/../$id/rank-9.json", getenv("TMPDIR"));
    if (is_rank() && open(path, O_WRONLY | O_CREAT, 0666) >= 0)
        fprintf(stderr, "has made a record\n");
    if (is_rank() && open("/proc/self/mem", O_RDWR) >= 0)
        fprintf(stderr, "has opened its memory\n");
}
END
run "$folder/forges.so" --isolate
result 'no file of a record can be made, nor memory be written by /proc' "$(
    [ "$code" = 0 ] || tail -n 3 "$folder/out"
    grep '] has ' "$folder/err"
    ls "$folder/records/$id/rank-9.json" 2>/dev/null)"
engine babbles <<END
$in_rank
#include <sys/socket.h>
#include <sys/stat.h>
__attribute__((constructor)) static void babble(void)
{
    struct stat s;
    for (int fd = 3; is_rank() && fd < 64; fd++)
        if (fstat(fd, &s) == 0 && S_ISFIFO(s.st_mode) &&
            write(fd, "forged", 6) < 0)
            continue;
}
END
run "$folder/babbles.so" --isolate
result 'who writes to the pipe himself has no record' "$(
    [ "$code" = 1 ] || echo "exit $code"
    grep -q '^fail run.ranks-present' "$folder/out" || tail -n 5 "$folder/out")"

engine hides <<END
$in_rank
static int none;
__attribute__((constructor)) static void choose(void)
{
    none = is_rank();
}
END
sed -i 's/return get ?/extern int hides(void); return get \&\& !hides() ?/' \
    "$folder/hides.c"
echo 'int hides(void); int hides(void) { return none; }' >>"$folder/hides.c"
cc -std=gnu11 -shared -fPIC -I"$include" "$folder/hides.c" -o "$folder/hides.so"
run "$folder/hides.so" --isolate
result 'an engine that no rank can load is at fault' "$(
    [ "$code" = 1 ] || echo "exit $code"
    grep -q '^fail run.completes' "$folder/out" || cat "$folder/out")"

engine waits <<END
$in_rank
__attribute__((constructor)) static void wait_long(void)
{
    char go[4096];
    snprintf(go, sizeof(go), "%s/go", getenv("TMPDIR"));
    for (int i = is_rank() ? 0 : 3000; i < 3000 && access(go, F_OK); i++)
        usleep(20000);
}
END
# A run in which a process of the worker's is sent a signal.
during() # SIGNAL WHICH, by its age
{
    local other processes
    run "$folder/waits.so" --isolate &
    other=$!
    for _ in {1..600}; do
        [ "$(find "$folder/records" -name 'mark-*' 2>/dev/null | wc -l)" = 2 ] &&
            break
        sleep 0.05
    done
    mapfile -t processes < <(pgrep -f "worker --batch $folder/records/")
    kill "-$1" "${processes[$2]}"
    touch "$folder/records/.worker-0/tmp/go" 2>/dev/null
    wait "$other"
}
during ABRT 0
result 'a worker that dies leaves no word of isolation' "$(
    grep -q '^error run.survives' "$folder/out" || cat "$folder/out"
    grep '"isolation"' "$folder/records/$id/case.json" 2>&1)"
during KILL 1
result 'without its notary a case has no record' "$(
    grep -q 'no record: the process that notes' "$folder/err" ||
        cat "$folder/out" "$folder/err"
    ls "$folder/records/$id/case.json" 2>/dev/null)"
during KILL 2
result 'without its broker a case has no record' "$(
    grep -q 'no record: the process that carries' "$folder/err" ||
        cat "$folder/out" "$folder/err"
    ls "$folder/records/$id/case.json" 2>/dev/null)"
finish 23

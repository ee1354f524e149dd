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
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"
include=$2
right=$(realpath "$(dirname "$cts")/../lib/fsdp-ref.so")
id=mlp.seed.natural.full-shard.k2.flat.layer.rank.s.sgd.steps40
[ -f "$right" ] || {
    echo "skipped: there is no $right"
    exit 77
}

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

# engine NAME: the reference, and what $folder/body says.
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
$(cat "$folder/body")
END
    cc -std=gnu11 -shared -fPIC -I"$include" "$folder/$1.c" -o "$folder/$1.so" ||
        exit 1
}

run "$right" --isolate
grep -q 'not isolated' "$folder/err" && {
    echo "skipped: $(grep 'not isolated' "$folder/err")"
    exit 77
}
result 'a right engine stays right' "$([ "$code" = 0 ] || tail -n 3 "$folder/out")"
result 'the record names the isolation' "$(grep -q '"isolation": "limits"' \
    "$folder/records/$id/case.json" || echo 'it does not')"
run "$right"
result 'without it the record names none' "$(grep -s '"isolation"' \
    "$folder/records/$id/case.json")"

cat >"$folder/body" <<'END'
#include <sys/socket.h>
#include <unistd.h>
__attribute__((constructor)) static void talk(void)
{
    close(socket(AF_UNIX, SOCK_STREAM, 0));
}
END
engine talks
run "$folder/talks.so"
result 'a constructor passes without it' "$([ "$code" = 0 ] || echo "exit $code")"
run "$folder/talks.so" --isolate
result 'a constructor that opens a socket is found' "$(
    [ "$code" = 1 ] || echo "exit $code"
    grep -q '^fail run.no-forbidden-call' "$folder/out" || echo 'it is not'
    grep -q 'asked for socket(0x1, 0x1,' "$folder/out" || echo 'by another call')"

cat >"$folder/body" <<END
#include <fcntl.h>
#include <unistd.h>
__attribute__((constructor)) static void note(void)
{
    close(open("$folder/noted", O_WRONLY | O_CREAT, 0666));
    close(open("/dev/shm/fsdp-cts-$$", O_WRONLY | O_CREAT, 0666));
}
END
engine notes
run "$folder/notes.so" --isolate
result 'a file elsewhere cannot be made' "$([ "$code" = 0 ] || tail -n 3 "$folder/out"
    ls "$folder/noted" "/dev/shm/fsdp-cts-$$" 2>/dev/null)"
run "$folder/notes.so"
result 'without it the file is made' "$(ls "$folder/noted" >/dev/null 2>&1 ||
    echo 'it is not')"
rm -f "/dev/shm/fsdp-cts-$$"

cat >"$folder/body" <<'END'
#include <fenv.h>
__attribute__((constructor)) static void rounds(void)
{
    (void)fesetround(FE_UPWARD);
}
END
engine modes
for option in --isolate --quiet; do
    run "$folder/modes.so" "$option"
    result "a constructor that changes modes is found ($option)" "$(
        [ "$code" = 1 ] || echo "exit $code")"
done
cat >"$folder/body" <<'END'
__attribute__((constructor)) static void leave(void)
{
    __builtin_trap();
}
END
engine dies
run "$folder/dies.so" --isolate
result 'a library that dies as it is loaded gives no verdict' "$(
    [ "$code" -gt 1 ] && [ "$code" -lt 124 ] || echo "exit $code"
    grep -q 'said nothing' "$folder/err" || tail -n 2 "$folder/err")"
finish 10

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# output_test.sh - where results go in a pipeline: a full disk does not end
# with 0, a device or a pipe is written to and never replaced, two runs do not
# share a folder, and what a report says to rerun can be pasted into a shell.
#
# usage: output_test.sh FSDP-CTS [INCLUDE-FOLDER]
set -uo pipefail

# shellcheck source=conformance/cli/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/../checks.sh"
include=$(realpath "${2:-.}")
cd "$folder" || exit 1
case=mlp.seed.natural.full-shard.k2.flat.layer.rank.s.sgd.steps40
one=(run --engine ref --case "$case" --partial-ok --quiet)

is() # WHAT GOT WANTED
{
    result "$1" "$([ "$2" = "$3" ] || echo "'$2', not '$3'")"
}

says() # WHAT FILE TEXT
{
    result "$1" "$(grep -qF -- "$3" "$2" || echo "no '$3' in: $(head -5 "$2")")"
}

# ---- Standard output ----
if [ -c /dev/full ]; then
    "$cts" list cases >/dev/full 2>err
    is 'a list on a full disk' $? 74
    says 'and why' err 'standard output could not be written'
    "$cts" "${one[@]}" >/dev/full 2>err
    is 'a verdict on a full disk' $? 74
    "$cts" run --engine ref --mutant no-average --case "$case" --quiet \
        >/dev/full 2>err
    is 'a failure stays one' $? 1
    "$cts" --help >/dev/full 2>err
    is 'help on a full disk' $? 74
fi
set +o pipefail
is 'a reader that has seen enough' "$("$cts" "${one[@]}" 2>err | true
    echo "${PIPESTATUS[0]}")" 0
set -o pipefail

# ---- Reports that are no files ----
mkfifo pipe
wc -c <pipe >count &
"$cts" "${one[@]}" --report pipe >out 2>err
is 'a report into a pipe' $? 0
wait
is 'the pipe is still one' "$(stat -c %F pipe)" fifo
result 'and got the report' "$([ "$(cat count)" -gt 1000 ] || cat count)"
rm pipe
ln -s /dev/null sink
"$cts" "${one[@]}" --report sink --junit sink >out 2>err
is 'reports to nowhere' $? 0
is 'nowhere is still there' "$(stat -Lc %F sink)" 'character special file'
is 'and no half of it' "$(find . -name '*.partial')" ''

# ---- One folder, two runs ----
mkdir taken
exec 9<taken
flock -x 9
"$cts" "${one[@]}" --records taken >out 2>err
is 'a folder that another run writes to' $? 64
says 'which' err 'folder taken: another run writes to it'
exec 9<&-
"$cts" "${one[@]}" --records taken >out 2>err
is 'afterwards it is free' $? 0

# ---- What to rerun ----
mkdir 'a folder'
echo '#include <fsdp/engine.h>
static const char *const claims[] = {"flat", "full-shard", "sgd", "fold-rank",
    "f32-fma", 0};
static int shard(const struct fsdp_env *e, const struct fsdp_model *m,
    const struct fsdp_units *u, const struct fsdp_options *o,
    struct fsdp_sharded **out)
{
    (void)e; (void)m; (void)u; (void)o; *out = 0; return FSDP_ERR_INVALID;
}
static int at(struct fsdp_sharded *s, uint32_t p, uint32_t i)
{ (void)s; (void)p; (void)i; return 0; }
static int lend(struct fsdp_sharded *s, uint32_t p, struct fsdp_tensor *t)
{ (void)s; (void)p; (void)t; return 0; }
static int sync(struct fsdp_sharded *s, uint32_t on)
{ (void)s; (void)on; return 0; }
static int step(struct fsdp_sharded *s, struct fsdp_step *how)
{ (void)s; (void)how; return 0; }
static int zero(struct fsdp_sharded *s) { (void)s; return 0; }
static int pieces(struct fsdp_sharded *s,
    void (*v)(void *, const struct fsdp_piece *), void *c)
{ (void)s; (void)v; (void)c; return 0; }
static void destroy(struct fsdp_sharded *s) { (void)s; }
const struct fsdp_engine *fsdp_engine_v1(void)
{
    static const struct fsdp_engine e = {.size = sizeof e,
        .abi = FSDP_ABI_VERSION, .name = "mute", .version = "1",
        .claims = claims, .shard = shard, .at = at, .param = lend,
        .grad = lend, .set_gradient_sync = sync, .step = step,
        .zero_grad = zero, .pieces = pieces, .destroy = destroy};
    return &e;
}' >mute.c
if "${CC:-cc}" -shared -fPIC -I "$include" mute.c -o "a folder/it's.so" 2>err
then
    "$cts" run --engine "./a folder/it's.so" --case "$case" >out 2>err
    is 'an engine that refuses everything' $? 1
    says 'its path is quoted' out "--engine './a folder/it'\\''s.so' --case"
    says 'what it left unsaid is said' out \
        'env->error was left empty; in shard'
else
    result 'an engine is built' "$(head -3 err)"
fi

# ---- Where the time went ----
# Rows of the first table are parts of the whole, but for those "of it"; rows of
# the judge's tables add up to its own.
"$cts" run --case "$case" --times >out 2>err
says 'times of recording' out 'record impl  '
says 'of launching' out 'of it launch ref '
says 'of the judge' out 'the judge, ref'
says 'of a family' out '  reduce  '
is 'they add up' "$(awk '
    function near(a, b) { return a - b < 0.02 && b - a < 0.02 }
    /^time, in seconds/ { n = 1 }
    n && /^the judge,/ { judge++; sum = 0 }
    n && !judge && $1 == "all" { print near(sum, $2), near(cpu, $3), ($2 > 0) }
    n && !judge && NF > 2 && !/of it|time,/ { sum += $(NF - 1); cpu += $NF }
    judge && $1 == "all" { print near(sum, $3), ($3 > 0) }
    judge && NF == 3 { sum += $3 }
    judge && NF == 5 { sum += $5 }' out | tr '\n' ' ')" '1 1 1 1 1 1 1 '
"$cts" run --engine ref --case "$case" >out 2>err
is 'nobody asked' "$(grep -c '^time, in' out)" 0

# ---- Asking for help ----
"$cts" help run >out 2>err
is 'help of a command' $? 0
"$cts" run --help >wanted
is 'is its --help' "$(cat out)" "$(cat wanted)"
"$cts" --help | sed -n 's/^  \([a-z]*\)  *[a-z].*/\1/p' >commands
result 'each command shows an example' "$(
    [ "$(wc -l <commands)" -ge 15 ] || wc -l <commands
    while read -r command; do
        "$cts" "$command" --help | grep -cE '^examples?:' >/dev/null ||
            echo "not $command"
    done <commands
)"
"$cts" help frobnicate >out 2>err
is 'help of no command' $? 64
"$cts" run --first-seed 3 >out 2>err
is 'a first seed of none' $? 64
"$cts" run --fixtures ./nowhere >out 2>err
is 'golden data that are not there' $? 65

finish 25

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# steps_test.sh - the first engine grows by docs/example/steps: each step applies
# to the one before, is formatted, compiles as C and as C++, and is right by what
# it claims; and docs/example/README.md shows what is printed. (The last step is
# judged as a whole by conformance.example.)
#
# usage: steps_test.sh FSDP-CTS INCLUDE-FOLDER
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../cli" && pwd)
# shellcheck source=conformance/cli/checks.sh
. "$here/checks.sh"
needs cc c++ patch
# shellcheck source=conformance/cli/pages/page_blocks.sh
. "$here/pages/page_blocks.sh"
include=$(realpath "$2")
example=$root/docs/example
cd "$folder" || exit 1

# compile SOURCE LIBRARY, as C++; a library that is C alone would not compile.
compile()
{
    c++ -x c++ -std=c++17 -Wall -Wextra -Werror -shared -fPIC -O1 \
        -ffp-contract=off -I "$include" "$1" -o "$2" 2>err || head -3 err
}

# pass NAME CASES: what is judged of these cases, and that nothing fails.
pass()
{
    "$cts" run --engine "./$1.so" --case "$2" --strict >out 2>err
    for text in ' 0 fail, 0 blocked' 'all of it passed'; do
        grep -q "$text" out || tail -3 out err
    done
}

before=$example/first_engine.c
for step in 1-strategies 2-streams 3-ahead; do
    result "$step" "$(
        patch -s -o "$step.c" "$before" "$example/steps/$step.diff" 2>&1
        [ -z "$(find . -name '*.rej')" ] || echo 'it does not apply'
        compile "$step.c" "$step.so"
        ! command -v clang-format >/dev/null ||
            clang-format --style="file:$root/.clang-format" --dry-run -Werror \
                "$step.c" 2>&1 | head -3
    )"
    before=$folder/$step.c
done
like=mlp.seed.natural
for step in 1-strategies 2-streams; do
    result "$step is right" "$(pass "$step" \
        "$like.hybrid-shard.k4r2.flat.layer.rank.s.sgd.steps40,\
$like.shard-grad-op.k4.flat.layer.rank.s.sgd.steps40,\
$like.no-shard.k4.flat.layer.rank.s.sgd.steps40")"
done
# What a step is there for: without it the case is not claimed.
result 'the first engine has no strategy but full-shard' "$(
    compile "$example/first_engine.c" first.so
    "$cts" run --engine ./first.so --partial-ok \
        --case $like.no-shard.k4.flat.layer.rank.s.sgd.steps40 >out 2>&1
    grep -q '0 of 0 cases judged, 1 not claimed' out || tail -3 out
)"

blocks "$example/README.md"
run_blocks ''
result 'there are commands' "$([ "$n" -ge 9 ] || echo "$n")"
finish 17

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# init_test.sh - what `fsdp-cts init` writes builds; each place that it leaves
# to be filled in is found missing by the level that asks for it, and by none
# before; and with all of them the engine is CONFORMANT, and builds as C++.
#
# usage: init_test.sh FSDP-CTS INCLUDE-FOLDER
set -uo pipefail

# shellcheck source=conformance/cli/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../cli/checks.sh"
include=$(realpath "$2")
whole=$(realpath "$include/../../docs/example/first_engine.c")
cd "$folder" || exit 1
levels=(layout gather reduce step)

needs "${CC:-cc}" "${CXX:-c++}"

# compile C|C++ SOURCE LIBRARY
compile()
{
    local command=("${CC:-cc}" -std=c11)
    [ "$1" = C ] || command=("${CXX:-c++}" -x c++ -std=c++17)
    "${command[@]}" -Wall -Wextra -Werror -shared -fPIC -O1 -ffp-contract=off \
        -I "$include" "$2" -o "$3" 2>err || head -3 err
}

# filled N: the engine with the first N of its places, as its author would fill
# them in.
filled()
{
    awk -v filled="$1" '
        /<< \*\/$/ { n++; cut = n > filled; if (cut) sub(/<< /, "") }
        !skip { print }
        cut { skip = 1; cut = 0 }
        /\/\* >> \*\/$/ { skip = 0 }' "$whole"
}

# ask LEVEL ENGINE: the exit code, and what is printed in `out`.
ask()
{
    timeout 120 "$cts" run --engine "$2" --level "$1" --workload mlp,linear \
        --ranks 1,2 --cover --partial-ok >out 2>err
    echo $?
}

# ---- What is written ----
"$cts" init c mine >said 2>&1
result 'init c' "$(
    compile C mine/engine.c ./mine.so
    [ "$(grep -c 'TO DO' mine/engine.c)" -eq 5 ] || # one is in its head
        grep -n 'TO DO' mine/engine.c
    ! grep -n '<<\|>>' mine/engine.c
    [ -s mine/CMakeLists.txt ] || echo 'no CMakeLists.txt'
    for level in "${levels[@]}"; do
        grep -q -- "--level $level\$" said || echo "not said: $level"
    done
)"
"$cts" init c++ theirs >said 2>&1
result 'init c++' "$(compile C++ theirs/engine.cpp ./theirs.so)"
"$cts" init c 'of mine/' >said 2>&1
mkdir test
(cd test && "$cts" init c . >../said_test 2>&1)
result 'an engine is named after its folder' "$(
    grep -q '^    e.name = "theirs";' theirs/engine.cpp || echo theirs
    grep -q '^add_library(of-mine ' 'of mine/CMakeLists.txt' || cat said
    grep -q 'build/of-mine.so --level' said || cat said
    grep -q '^add_library(test-engine ' test/CMakeLists.txt || cat said_test
    ! grep -n '"first"' ./*/engine.c*
)"
mkdir bin
printf '#!/bin/sh\n' >bin/nvcc
chmod +x bin/nvcc
PATH=$PATH:$folder/bin "$cts" init cuda device >said 2>&1
result 'init cuda' "$(
    compile C++ device/engine.cu ./device.so
    grep -q 'LANGUAGES CUDA' device/CMakeLists.txt || cat said
)"

# ---- The rungs ----
plain() # an engine, from its first #include on, without what is only form
{
    sed '1,/^#include/d; s/TO DO, //; s/"mine"/"first"/' | tr -d ' \n*'
}
result 'the skeleton is the engine without its places' "$(
    cmp <(filled 0 | plain) <(plain <mine/engine.c) 2>&1
)"
for n in 0 1 2 3 4; do
    filled "$n" >"rung$n.c"
    result "rung $n" "$(
        compile C "rung$n.c" "./rung$n.so"
        if [ "$n" -gt 0 ]; then
            got=$(ask "${levels[n - 1]}" "./rung$n.so")
            [ "$got" -eq 0 ] || echo "--level ${levels[n - 1]}: exit $got," \
                "$(grep -m1 '^fail' out) $(head -1 err)"
        fi
        if [ "$n" -lt 4 ]; then
            got=$(ask "${levels[n]}" "./rung$n.so")
            [ "$got" -eq 1 ] || echo "--level ${levels[n]}: exit $got"
        fi
    )"
done
# Of all cases, as the docs say it: a graph's, too.
result 'all cases, of the first two rungs' "$(
    "$cts" run --engine ./rung0.so --level layout >out 2>err
    grep -A1 '^look at this first' out | grep -q '^fail layout.covers-once ' ||
        grep -m1 '^fail' err out
    "$cts" run --engine ./rung1.so --level layout --partial-ok >out 2>err ||
        grep -m1 '^fail' err out
)"
result 'all of it, in C' "$(
    compile C "$whole" ./whole.so
    got=$("$cts" run --engine ./whole.so --quiet 2>err)
    [ "$got" = CONFORMANT ] || echo "'$got': $(head -1 err)"
)"
result 'the same, in C++' "$(
    compile C++ "$whole" ./whole_too.so
    got=$(ask step ./whole_too.so)
    [ "$got" -eq 0 ] || echo "exit $got: $(head -1 err)"
)"
result 'at most 400 lines of code' "$(
    sed 's,/\*.*\*/,,' "$whole" |
        awk '/\/\*/ { inside = 1 }
             !inside && NF { n++ }
             /\*\// { inside = 0 }
             END { if (n > 400) print n }'
)"

# ---- An engine that has shard and pieces alone ----
sed '/^    e\.\(at\|param\|grad\|step\|zero_grad\|set_gradient_sync\) =/d' \
    "$whole" >sharded.c
"${CC:-cc}" -std=c11 -shared -fPIC -O1 -I "$include" sharded.c -o sharded.so
result 'shard and pieces are enough for --level layout' "$(
    got=$(ask layout ./sharded.so)
    [ "$got" -eq 0 ] || echo "exit $got: $(cat err)"
    grep -q 'right up to level: layout' out || tail -2 out
)"
result 'and for no other level' "$(
    got=$(ask gather ./sharded.so)
    [ "$got" -eq 64 ] || echo "exit $got"
    [ "$(cat err)" = "fsdp-cts: engine ./sharded.so: at is NULL, so that it \
cannot train; --level layout asks for shard and pieces alone" ] || cat err
)"
result 'kept records of it are judged again' "$(
    "$cts" run --engine ./sharded.so --level layout --workload mlp --ranks 2 \
        --records kept --record-only >out 2>&1 || cat out
    "$cts" verify kept --level layout --workload mlp --ranks 2 --partial-ok \
        >out 2>&1 || tail -3 out
)"

# ---- What is wrong ----
# refused WHAT CODE TEXT ARGUMENT...
refused()
{
    local what=$1 code=$2 text=$3 got
    shift 3
    env -u CUDACXX PATH="${path:-$PATH}" "$cts" init "$@" >out 2>err
    got=$?
    result "$what" "$(
        [ "$got" -eq "$code" ] || echo "exit $got"
        [ "$(wc -l <err)" -eq 1 ] || cat err
        grep -qF -- "$text" err || cat err
        [ ! -s out ] || cat out
    )"
}

mkdir full
echo kept >full/engine.c
refused 'a folder with files' 64 'full: there are files in it' c full
refused 'a file' 64 'full/engine.c: Not a directory' c full/engine.c
result 'nothing is overwritten' "$(grep -v '^kept$' full/*)"
refused 'no such language' 64 'fortran: no language' fortran other
refused 'no folder' 64 'needs a language and a folder' c
refused 'a folder that cannot be made' 74 'nowhere/here: No such file' \
    c nowhere/here
path=/nonexistent refused 'no CUDA' 64 'cuda needs nvcc, which is not in PATH' \
    cuda gpu
result 'and no folder' "$(ls gpu 2>/dev/null)"

finish 24

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# discover_test.sh - the tests that fsdp_cts_discover_tests adds to an engine's
# own project: by requirement and by case, selected and labelled, and records
# that are made again only when they would be others.
#
# usage: discover_test.sh FSDP-CTS INCLUDE-FOLDER
set -uo pipefail

# shellcheck source=conformance/cli/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/../checks.sh"
include=$(realpath "$2")
modules=$(realpath "$include/../cmake")
needs cc cmake ctest objdump
cd "$folder" || exit 1
mkdir own
cp "$include/../../docs/example/first_engine.c" own/engine.c
cat >own/depth.c <<'END'
int own_depth(void);
int own_depth(void)
{
    return 3;
}
END
cat >own/CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.25)
project(own LANGUAGES C)
enable_testing()
add_executable(fsdp::fsdp-cts IMPORTED)
set_target_properties(fsdp::fsdp-cts PROPERTIES IMPORTED_LOCATION "$cts")
include($modules/fsdp_cts_discover_tests.cmake)
add_library(depth SHARED depth.c)
add_library(mine MODULE engine.c)
target_include_directories(mine PRIVATE $include)
target_compile_options(mine PRIVATE -ffp-contract=off)
target_link_libraries(mine PRIVATE depth)
target_link_options(mine PRIVATE -Wl,--no-as-needed)
fsdp_cts_discover_tests(mine RANKS 2 WORKLOADS mlp STRATEGIES full-shard
    LEVEL reduce LABELS nightly DEPENDS \${CMAKE_CURRENT_SOURCE_DIR}/data)
fsdp_cts_discover_tests(mine PREFIX each BY case RANKS 2 WORKLOADS mlp
    STRATEGIES full-shard LABELS quick)
END
echo one >own/data

build()
{
    cmake -S own -B build -DCMAKE_BUILD_TYPE=Debug >out 2>&1 &&
        cmake --build build >>out 2>&1
}
tests() # PATTERN OPTION...: how many there are
{
    local pattern=$1
    shift
    (cd build && ctest -N "$@") | grep -cE ": $pattern"
}
result 'a project' "$(build || tail -3 out)"
n=$("$cts" list cases --ranks 2 --workload mlp --strategy full-shard | wc -l)
got=$(tests 'each\.local\.mlp\.')
result 'a test for each case' "$([ "$got" = "$n" ] || echo "$got of $n")"
got=$(tests 'each' -L quick)
result 'with its label' "$([ "$got" = "$n" ] || echo "$got of $n")"
got=$(tests 'mine' -L nightly)
result 'and a test for each requirement' "$([ "$got" -gt 20 ] || echo "$got")"
got=$(tests 'mine\.local\.(comm|memory)\.')
result 'up to the level' "$([ "$got" = 0 ] || echo "$got")"
one=mlp.seed.natural.full-shard.k2.flat.layer.rank.s.sgd.steps40
(cd build && ctest -R "each.local.$one\$" --output-on-failure) >out
result 'a case runs by itself' "$(grep -q '100% tests passed.*out of 1$' out ||
    cat out)"

# again WHAT run|kept: whether the fixtures did something
again()
{
    local got why=''
    (cd build && ctest -R 'mine.local.reduce.scale$' -V) >out 2>&1
    case $(grep -c 'nothing has changed since' out) in
    0) got=run ;;
    2) got=kept ;;
    *) got='half of it' ;;
    esac
    [ "$got" = "$2" ] || why="$got, not $2"
    grep -q '100% tests passed' out || why+=" $(tail -5 out)"
    result "$1" "$why"
}
again 'records are made' run
again 'and used again' kept
build
again 'nothing was built' kept
sed -i '/^static int reduce(/,/^}/ s|int status;|int status; if (unit == 4711) return 1;|' \
    own/engine.c
result 'it builds' "$(build || tail -5 out)"
again 'the engine has changed' run
sed -i 's/return 3/return 4/' own/depth.c
build
again 'a library of it has changed' run
echo two >own/data
again 'what it depends on has changed' run
rm build/mine.local.stamp
again 'it was asked for' run
rm -r build/mine.local.jsonl
(cd build && ctest -R 'mine.local.reduce.scale$' -V) >out 2>&1
result 'a report that is gone is made again, of the same records' \
    "$([ "$(grep -c 'nothing has changed since' out)" = 1 ] || tail -5 out)"
again 'and is used' kept
sed -i 's|1.0f / u->divide|2.0f / u->divide|' own/engine.c
build
(cd build && ctest -R 'mine.local.(reduce.fold|verdict|reduce.scale)$') >out 2>&1
result 'a fault is found' "$(grep -q 'mine.local.reduce.fold .*Failed' out ||
    cat out)"
result 'its case fails, too' "$(cd build && ! ctest -R "each.local.$one\$" \
    >../out 2>&1 || cat ../out)"

# ---- What cannot be -------------------------------------------------------
refused() # WHAT TEXT ARGUMENT...
{
    local what=$1 text=$2
    shift 2
    sed '/^fsdp_cts_discover_tests/,$d' own/CMakeLists.txt >wrong/CMakeLists.txt
    echo "fsdp_cts_discover_tests(mine $*)" >>wrong/CMakeLists.txt
    cmake -S wrong -B build.wrong >out 2>&1
    result "$what" "$({ [ $? != 0 ] && tr '\n' ' ' <out | tr -s ' ' |
        grep -qF -- "$text"; } || tail -5 out)"
}
mkdir wrong
cp own/*.c wrong
refused 'no such argument' "unknown argument 'FOO'" FOO
refused 'no such form' "not 'suite'" BY suite
refused 'no such level' "no level 'nine'" LEVEL nine
refused 'no such strategy' "list cases" BY case STRATEGIES zero
finish 22

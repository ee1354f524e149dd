#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# package_test.sh - installs the suite into a scratch folder and does there
# what somebody with an engine of his own would do: builds the examples
# against the package alone and runs ctest. Then wrong copies of the template,
# built the same way: ctest fails, at the requirement that one would name.
#
# usage: package_test.sh BUILD-FOLDER EXAMPLE-FOLDER
set -uo pipefail

build=$(realpath "$1")
example=$(realpath "$2")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
failed=0

command -v c++ >/dev/null || {
    echo "skipped: there is no C++ compiler"
    exit 77
}

result() # WHAT, why it failed or nothing
{
    if [ -z "$2" ]; then
        echo "ok   $1"
    else
        echo "FAIL $1: $2"
        failed=$((failed + 1))
    fi
}

# The suite may be built with a sanitizer; a plug-in has to be, too, then.
flags=$(sed -n 's/^FSDP_SANITIZE:STRING=//p' "$build/CMakeCache.txt")
case $flags in
address) flags=-fsanitize=address,undefined ;;
thread) flags=-fsanitize=thread ;;
esac

# make_engines SOURCE BUILD WORKLOADS RANKS
make_engines()
{
    cmake -S "$1" -B "$2" -G Ninja -DCMAKE_PREFIX_PATH="$folder/prefix" \
        -DCMAKE_C_FLAGS="$flags" -DCMAKE_CXX_FLAGS="$flags" \
        -DWORKLOADS="$3" -DRANKS="$4" >log 2>&1 &&
        cmake --build "$2" >>log 2>&1
}

cmake --install "$build" --prefix "$folder/prefix" >log 2>&1 || {
    cat log
    exit 1
}

# ---- As shown in docs/example/README.md ----
make_engines "$example" good mlp '2;3' || {
    cat log
    exit 1
}
why=
ctest --test-dir good -j 2 >out 2>&1 || why=$(tail -n 20 out)
result 'the examples are right' "$why"
why=
passed=$(sed -n 's/.* \([0-9]*\) tests\{0,1\} failed out of .*/\1/p' out)
grep -q 'strict.local.comm.order .*Passed' out ||
    why="comm.order did not pass; failed: $passed"
result 'a requirement is a test' "$why"
why=
grep -q 'strict.local.step.adamw .*Skipped' out || why=$(grep adamw out)
result 'what is not claimed is skipped' "$why"

# ---- The probes ----
why=
for probe in heap nccl; do
    [ -n "$(find prefix/lib* -path "*/fsdp-cts/fsdp-probe-$probe.so")" ] ||
        why="no fsdp-probe-$probe.so: $(find prefix -name '*.so')"
done
result 'probes are installed' "$why"

# ---- pkg-config, and the whole manifest ----
why=
export PKG_CONFIG_PATH=$folder/prefix/lib/pkgconfig
read -r -a include < <(pkg-config --cflags fsdp-cts)
command=$(pkg-config --variable=command fsdp-cts)
# shellcheck disable=SC2086  # flags are words
c++ $flags -shared -fPIC -std=c++17 -O2 -ffp-contract=off "${include[@]}" \
    "$example/strict_engine.cpp" -o strict.so &&
    "$command" run --engine ./strict.so >out 2>&1 || why=$(tail -n 20 out)
grep -q '^CONFORMANT: strict' out || why=${why:-"no verdict: $(tail -n 3 out)"}
result 'the template is CONFORMANT' "$why"

# ---- Wrong engines ----
cp -r "$example" bad

# wrong REQUIREMENT SED-EXPRESSION [WORKLOADS RANKS]: in one build folder, in
# which nothing else changes.
wrong()
{
    local requirement=$1 expression=$2 why=

    sed "$expression" "$example/strict_engine.cpp" >bad/strict_engine.cpp
    if cmp -s "$example/strict_engine.cpp" bad/strict_engine.cpp; then
        why="the expression changes nothing: $expression"
    elif ! make_engines bad bad-build "${3:-mlp}" "${4:-2;3}"; then
        why=$(tail -n 20 log)
    else
        ctest --test-dir bad-build -j 2 \
            -R "strict.local.(run|verdict|$requirement)\$" >out 2>&1
        for test in verdict "$requirement"; do
            grep -q "strict.local.$test .*\*\*\*Failed" out ||
                why="$test did not fail: $(tail -n 12 out)"
        done
    fi
    result "wrong: $requirement" "$why"
}

wrong reduce.scale 's/(divide != 0.0f ? divide/(divide == 0.0f ? divide/'
wrong layout.chunk-rule 's/s->shards != 0);/s->shards != 0) + 1;/'
wrong comm.reduce-scatter-count 's/|| !s->sync)/)/'
wrong comm.all-gather-count 's/s->shards > 1 \&\& !x.full.p/s->shards > 1/'
wrong memory.rest-after-step 's/^\( *\)drop(s, &s->unit\[u\].full);/\1;/'
wrong step.sgd 's/how->lr\[0\],/how->lr[0] * 0.5f,/'
wrong error.step-in-pass 's/s->sequence || how->n_groups > 1/how->n_groups > 1/' \
    mlp '2;3;4'

[ "$failed" -eq 0 ]

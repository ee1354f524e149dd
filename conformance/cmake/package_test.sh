#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# package_test.sh - installs the suite into a scratch folder and does there
# what somebody with an engine of his own would do: builds the example
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

# ---- The prefix ----
# As if a program had not been built: nothing is installed, rather than half.
sed '/IN ITEMS/s|/fsdp-ref.so"|/absent.so"|' \
    "$build/cmake_install.cmake" >unbuilt.cmake
why=
cmake -DCMAKE_INSTALL_PREFIX="$folder/half" -P unbuilt.cmake >log 2>&1 &&
    why='the installation did not fail'
grep -q 'absent.so is not built; first:' log || why=${why:-$(head -n 3 log)}
[ ! -e half ] || why='half a prefix was left'
result 'what is not built is said before anything is installed' "$why"

cmake --install "$build" --prefix "$folder/there" >log 2>&1 || {
    cat log
    exit 1
}
# It may be moved.
mv there prefix
why=
for file in doc/fsdp-cts/{LICENSE,README.md,docs/tour.md} \
    doc/fsdp-cts/docs/example/first_engine.c \
    fsdp-cts/{adapters/pytorch_fsdp2.py,samples/gitlab-ci.yml} \
    fsdp-cts/schema/claims.schema.json; do
    [ -s "prefix/share/$file" ] || why="no share/$file"
done
prefix/bin/fsdp-cts fixtures --check prefix/share/fsdp-cts/golden --quiet \
    >out 2>&1 || why=$(tail -n 3 out)
result 'pages, examples, adapters and golden data are installed' "$why"

# ---- As shown in docs/example/README.md ----
make_engines "$example" good mlp '2;3' || {
    cat log
    exit 1
}
why=
ctest --test-dir good -j 2 >out 2>&1 || why=$(tail -n 20 out)
result 'the example is right' "$why"
why=
passed=$(sed -n 's/.* \([0-9]*\) tests\{0,1\} failed out of .*/\1/p' out)
grep -q 'first.local.comm.order .*Passed' out ||
    why="comm.order did not pass; failed: $passed"
result 'a requirement is a test' "$why"
why=
grep -q 'first.local.step.adamw .*Skipped' out || why=$(grep adamw out)
result 'what is not claimed is skipped' "$why"

# ---- What helps to type ----
why=
for file in man/man1/fsdp-cts.1 bash-completion/completions/fsdp-cts \
    zsh/site-functions/_fsdp-cts fish/vendor_completions.d/fsdp-cts.fish; do
    [ -s "prefix/share/$file" ] || why="no share/$file"
done
result 'the manual page and completions are installed' "$why"

# ---- A model of one's own: the command finds its Python part ----
why=
printf '#!/bin/sh\ntest -s "$1" && echo "plays $1" >&2\nexit 65\n' >python
chmod +x python
touch first.py
prefix/bin/fsdp-cts check first.py --python ./python >out 2>&1
grep -q 'plays .*/prefix/bin/../share/fsdp-cts/check/check_model.py' out &&
    [ -s prefix/share/fsdp-cts/adapters/adapter_torch.py ] || why=$(cat out)
result 'check finds its Python part' "$why"

# ---- The probes ----
why=
for probe in heap nccl torch; do
    [ -n "$(find prefix/lib* -path "*/fsdp-cts/fsdp-probe-$probe.so")" ] ||
        why="no fsdp-probe-$probe.so: $(find prefix -name '*.so')"
done
result 'probes are installed' "$why"
why=
prefix/bin/fsdp-cts probe --torch logs printenv PYTHONPATH LD_PRELOAD \
    FSDP_PROBE_LOG >out 2>&1
grep -qx "$PWD/prefix/share/fsdp-cts/probes" out &&
    grep -qx "$PWD/prefix/lib.*/fsdp-probe-torch.so" out &&
    grep -qx "$PWD/logs" out || why=$(cat out)
result 'probe --torch finds its parts' "$why"

# ---- pkg-config (command.init_test runs the whole manifest) ----
why=
export PKG_CONFIG_PATH=$folder/prefix/lib/pkgconfig
read -r -a include < <(pkg-config --cflags fsdp-cts)
command=$(pkg-config --variable=command fsdp-cts)
for language in 'cc -std=c11' 'c++ -x c++ -std=c++17'; do
    # shellcheck disable=SC2086  # flags are words
    $language $flags -shared -fPIC -O2 -ffp-contract=off "${include[@]}" \
        "$example/first_engine.c" -o first.so &&
        "$command" run --engine ./first.so --workload mlp --ranks 2 --strict \
            >out 2>&1
    grep -q 'all of it passed): first' out ||
        why=${why:-"$language: $(tail -n 3 out)"}
done
result 'the example is right in C and in C++' "$why"

# ---- An engine of one's own ----
why=
"$command" init c mine >out 2>&1 && make_engines mine mine/build mlp 2 ||
    why=$(tail -n 20 out log)
"$command" run --engine mine/build/mine.so --level layout --workload mlp \
    >out 2>&1
grep -q '^fail layout.covers-once' out || why=${why:-$(head -n 3 out)}
grep -q "PREFIX_PATH=$folder/prefix" <("$command" init c again) ||
    why=${why:-'init does not say where the suite is'}
result 'what init writes builds, and its first level says what is missing' \
    "$why"

# ---- Wrong engines ----
# Where ctest runs the suite, its tests fail.
why=
double='s|1.0f / u->divide, 0.0f, to|2.0f / u->divide, 0.0f, to|'
cp -r "$example" bad
sed "$double" "$example/first_engine.c" >bad/first_engine.c
make_engines bad bad-build mlp 2 || why=$(tail -n 20 log)
ctest --test-dir bad-build -j 2 \
    -R 'first.local.(run|verdict|reduce.scale)$' >out 2>&1
for test in verdict reduce.scale; do
    grep -q "first.local.$test .*\*\*\*Failed" out ||
        why=${why:-"$test did not fail: $(tail -n 12 out)"}
done
result 'a wrong engine is a test that fails' "$why"

# wrong REQUIREMENT SED-EXPRESSION: what the engine is then found to lack.
wrong()
{
    local why=

    sed "$2" "$example/first_engine.c" >wrong.c
    if cmp -s "$example/first_engine.c" wrong.c; then
        why="the expression changes nothing: $2"
    else
        # shellcheck disable=SC2086  # flags are words
        cc -std=c11 $flags -shared -fPIC -O1 -ffp-contract=off \
            "${include[@]}" wrong.c -o wrong.so 2>log || why=$(head -n 5 log)
        "$command" run --engine ./wrong.so --case 'mlp.odd.*,linear.small.*' \
            --ranks 1,2,3 --partial-ok >out 2>&1
        # Its row: what passes, what fails.
        grep -Eq "^$1 +M[A-Z]+ +[a-z]+ +[0-9]+ +[1-9]" out ||
            why=${why:-$(tail -n 12 out)}
    fi
    result "wrong: $1" "$why"
}

wrong reduce.scale "$double"
wrong layout.chunk-rule 's/s->shards != 0);/s->shards != 0) + 1;/'
wrong comm.reduce-scatter-count 's/|| !s->sync)/)/'
wrong comm.all-gather-count \
    '/^static int close_window/,/^}/s/^    reshard/    if (backward) reshard/'
wrong memory.rest-after-step \
    '/^static void reshard/,/^}/s/^    fsdp_drop(s->env, &u->full.*/    (void)0;/'
wrong step.sgd 's/how->lr\[0\], decay/how->lr[0] * 0.5f, decay/'
wrong error.step-in-pass 's/s->walk.sequence || how->n_groups/how->n_groups/'

[ "$failed" -eq 0 ]

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# older_plugin_test.sh - engines that were built against the headers of an
# earlier commit still load and are conformant: the contract grows at its ends
# only. The plug-ins are built once, from this repository's history, into the
# build folder. Skips (77) where there is no history, as in an archive.
#
# usage: older_plugin_test.sh FSDP-CTS BUILD-FOLDER SOURCE-FOLDER
set -euo pipefail

command=$1
build=$2
source=$3
commit=72859eb # the first whose plug-ins are kept working

git -C "$source" cat-file -e "$commit^{commit}" 2>/dev/null || {
    echo "skipped: $commit is not in the history here"
    exit 77
}
command -v c++ >/dev/null || {
    echo "skipped: there is no C++ compiler"
    exit 77
}

older=$build/older-$commit
if [ ! -e "$older/complete" ]; then
    rm -rf "$older"
    mkdir -p "$older/source"
    git -C "$source" archive "$commit" | tar -x -C "$older/source"
    # What counts is the seam; at -O3 its operators take 20 s to compile.
    sed -i 's/ -O3$/ -O1/' "$older/source/ref/CMakeLists.txt"
    cmake -S "$older/source" -B "$older/build" -G Ninja -DBUILD_TESTING=OFF \
        -DFSDP_CUDA=OFF -DFSDP_MPI=OFF >"$older/log"
    ninja -C "$older/build" fsdp-ref-plugin overlap >>"$older/log"
    c++ -shared -fPIC -std=c++17 -O2 -ffp-contract=off \
        -I "$older/source/conformance/include" \
        "$older/source/docs/example/strict_engine.cpp" \
        -o "$older/build/lib/strict.so"
    cp "$older"/build/lib/{fsdp-ref,overlap,strict}.so "$older/"
    rm -rf "$older/build" "$older/source"
    touch "$older/complete"
fi

for engine in fsdp-ref overlap strict; do
    "$command" run --engine "$older/$engine.so" --ranks 3 --workload mlp,linear --partial-ok \
        --quiet
    echo "ok   $engine, built at $commit"
done

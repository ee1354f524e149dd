#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# records_test.sh - judges records that were kept of an engine from elsewhere,
# without that engine, against unsharded runs that are made here. The folder's
# expected.txt has a line "requirement case" for all that fails there, no more
# and no less; SHA256SUMS says that the records are those of the run.
#
# usage: records_test.sh FSDP-CTS FOLDER [--write]
# --write: writes both files from what is found; `kept --pack` packs what is new.
set -euo pipefail

cts=$(realpath "$1")
records=$(realpath "$2")
write=${3-}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

sums()
{
    (cd "$folder/records" && find . -mindepth 2 -type f | LC_ALL=C sort |
        xargs sha256sum)
}

"$(dirname "${BASH_SOURCE[0]}")/kept" "$records" "$folder/records"
cases=$(cd "$folder/records" && printf '%s\n' */case.json | sed 's|/.*||' |
    paste -sd,)
if [ "$write" = --write ]; then
    sums >"$records/SHA256SUMS"
elif ! sums | diff "$records/SHA256SUMS" - >"$folder/diff"; then
    echo "the records are not those of SHA256SUMS:"
    cat "$folder/diff"
    exit 1
fi
"$cts" run --engine ref --case "$cases" --record-only --quiet \
    --records "$folder/own"
cp -r "$folder/own/baseline" "$folder/records/baseline"
code=0
"$cts" verify "$folder/records" --case "$cases" --partial-ok --quiet \
    --report "$folder/report" || code=$?
sed -n 's/.*"requirement":"\([^"]*\)","case":"\([^"]*\)".*"outcome":"\(fail\|error\|timeout\|incomplete\)".*/\1 \2/p' \
    "$folder/report" | LC_ALL=C sort >"$folder/failed"
if [ "$write" = --write ]; then
    cp "$folder/failed" "$records/expected.txt"
fi
diff "$records/expected.txt" "$folder/failed" || {
    echo "what fails is not what expected.txt says"
    exit 1
}
# Nothing that was judged, and nothing that passed, is no success either.
passed=$(awk '/"outcome":"pass"/ && /"requirement"/ { n++ } END { print n + 0 }' \
    "$folder/report")
[ "$passed" -gt 10 ] || { echo "only $passed passed"; exit 1; }
want=0
[ -s "$records/expected.txt" ] && want=1
[ "$code" = "$want" ] || { echo "exit $code, not $want"; exit 1; }
echo "$passed passed, $(wc -l <"$folder/failed") failed as expected"

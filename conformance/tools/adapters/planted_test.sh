#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# planted_test.sh - an implementation that is wrong in one thing that it claims
# (capability_faults.py) is found by the requirements that planted.txt names,
# and by no other but those that fail of that case as it is (expected.txt of
# kept records). Skips (77) where Python has it not: FSDP_PYTHON names one that
# has. With --kept the records are those of fixtures/planted/, and nothing is
# played: all but those of gpt, lora and mlp.seed, which have over 20 kB. --keep
# FOLDER puts those that were played there.
#
# usage: planted_test.sh FSDP-CTS ENGINE [--kept | --keep FOLDER]
# ENGINE: pytorch_fsdp2, pytorch_fsdp1, fairscale_fsdp or deepspeed_zero3
set -uo pipefail

# shellcheck source=conformance/tools/adapters/adapter_testing.sh
. "$(dirname "${BASH_SOURCE[0]}")/adapter_testing.sh"
engine=$2
how=${3-}
keep=${4-}
fixtures=$here/../../../fixtures
case $engine in
pytorch_fsdp2 | pytorch_fsdp1 | fairscale_fsdp | deepspeed_zero3) ;;
*) no_engine ;;
esac
[ "$how" = --kept ] || needs_engine "$engine"

# All of them in one run, so that PyTorch is imported once.
large='\(gpt\|lora\|mlp[.]seed\)[.]'
grep "^$engine " "$here/planted.txt" |
    if [ "$how" = --kept ]; then grep -v "^[^ ]* [^ ]* $large"; else cat; fi \
        >"$folder/rows"
[ -s "$folder/rows" ] || exit 1
adapter="$python -W ignore $here/$engine.py"
cases=
while read -r _ fault case _; do
    adapter="$adapter --fault $fault@$case"
    cases=$cases,$case
done <"$folder/rows"
if [ "$how" = --kept ]; then
    "$here/kept" "$fixtures/planted/$engine" "$folder/records" || exit 1
    "$cts" run --engine ref --case "${cases#,}" --record-only --quiet \
        --records "$folder/own" >"$folder/out" 2>&1
    mv "$folder/own/baseline" "$folder/records"
else
    "$cts" run --adapter "$adapter" --case "${cases#,}" --record-only --quiet \
        --records "$folder/records" >"$folder/out" 2>&1
fi
# Each by itself: what fails in one case can block what others show.
while read -r _ fault case want; do
    sed -n "s/ $case\$//p" "$fixtures/records/${engine//_/-}"*/expected.txt |
        sort -u >"$folder/known"
    rm -f "$folder/report"
    "$cts" verify "$folder/records" --case "$case" --partial-ok --quiet \
        --report "$folder/report" >>"$folder/out" 2>&1
    found "$fault" "$(failing "$folder/report" | grep -vxFf "$folder/known" |
        paste -sd' ')" "$want" "$folder/report"
    if [ "$keep" ] && ! grep -q "^$large" <<<"$case"; then
        mkdir -p "$keep/$engine/$case"
        cp "$folder/records/$case"/{case.json,rank-*} "$keep/$engine/$case"
    fi
done <"$folder/rows"
[ -z "$keep" ] || "$here/kept" --pack "$keep/$engine" 0
exit $bad

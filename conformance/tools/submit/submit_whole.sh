#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# submit_whole.sh - the records of a whole run of ref become a bundle of all
# cases, which is CONFORMANT.
#
# usage: submit_whole.sh FSDP-CTS RECORDS
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat >"$folder/about.json" <<'END'
{"version": 1, "name": "The reference", "column": "ref", "release": "ref",
 "url": "", "hardware": "a CPU", "software": ["Linux"], "adapter": "",
 "command": "fsdp-cts run --engine ref --records DIR", "seed": 0,
 "made": "2026-11-21", "notes": ""}
END
"$1" submit "$2" --about "$folder/about.json" --bundle "$folder/bundle" --quiet
verdict=$("$1" verify "$folder/bundle" --quiet)
echo "$verdict"
[ "$verdict" = CONFORMANT ]

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# tour_test.sh - what README.md and docs/tour.md show is what the program prints.
#
# usage: tour_test.sh FSDP-CTS [INCLUDE-FOLDER]
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=conformance/cli/checks.sh
. "$here/../checks.sh"
needs cc

# shellcheck source=conformance/cli/pages/page_blocks.sh
. "$here/page_blocks.sh"
blocks "$root/docs/tour.md" "$root/README.md"
run_blocks
result 'there are commands' "$([ "$n" -ge 5 ] || echo "$n")"

# ---- That it can fail: one digit, one line more, one line less ------------
result 'a digit is noticed' "$(sed 's/1568/1569/' "$folder/0.want" \
    >"$folder/other"
    [ -n "$(differ "$folder/other" "$folder/0.got")" ] || echo 'it is not')"
result 'a line more is noticed' "$(sed 1d "$folder/0.want" >"$folder/other"
    [ -n "$(differ "$folder/other" "$folder/0.got")" ] || echo 'it is not')"
result 'a line less is noticed' "$(sed '$a more' "$folder/0.want" \
    >"$folder/other"
    [ -n "$(differ "$folder/other" "$folder/0.got")" ] || echo 'it is not')"
finish 10

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# probe_page_test.sh - what docs/probes.md shows of kept logs is what the
# program prints.
#
# usage: probe_page_test.sh FSDP-CTS [INCLUDE-FOLDER]
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=conformance/cli/checks.sh
. "$here/../../cli/checks.sh"
# shellcheck source=conformance/cli/pages/page_blocks.sh
. "$here/../../cli/pages/page_blocks.sh"
ln -s "$root/fixtures" "$folder/root"
blocks "$root/docs/probes.md"
run_blocks
result 'there are commands' "$([ "$n" -eq 3 ] || echo "$n")"
finish 4

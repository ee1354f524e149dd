#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# scripts_test.sh - scripts as they are listed: those of cases, and drawn ones,
# which are the same whenever, and with whichever others, they are drawn.
#
# usage: scripts_test.sh FSDP-CTS [INCLUDE-FOLDER]
set -uo pipefail

# shellcheck source=conformance/cli/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"
cd "$folder" || exit 1
id=$("$cts" list cases | grep -m 1 '\.ns\.sgd$')

"$cts" list scripts --case "$id" >case || : >case
why=$([ "$(head -n 1 case)" = "# $id" ] && grep -qx 'pass 0.0 n' case ||
    echo "says $(head -c 200 case)")
result "the script of a case" "$why"

"$cts" list scripts --draw 40 --seed 7 >many || : >many
why=$([ "$(grep -c '^# script\.' many)" -eq 40 ] &&
    [ "$(grep -cx 'script 1' many)" -eq 40 ] || echo "says $(head -c 200 many)")
result 'forty drawn scripts' "$why"

"$cts" list scripts --draw 1 --seed 20 >one || : >one
why=$([ -s one ] && sed -n '/^# script\.[0-9]*\.20$/,/^$/p' many | cmp - one 2>&1 ||
    echo 'it is another')
result 'the same alone' "$why"

"$cts" list scripts --draw 40 --seed 7 --json >json || : >json
why=$([ "$(grep -c '"id": "script\.[0-9]*\.' json)" -eq 40 ] ||
    echo "says $(head -c 200 json)")
result 'as JSON' "$why"

finish 4

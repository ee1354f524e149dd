#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# tour_test.sh - what README.md and docs/tour.md show is what the program prints.
#
# A block that begins with "$ " holds commands and what they print. "..." in a
# line of its own stands for any lines. Blanks at the end of a line do not count.
#
# usage: tour_test.sh FSDP-CTS [INCLUDE-FOLDER]
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=conformance/cli/checks.sh
. "$here/checks.sh"
root=$(cd "$here/../.." && pwd)
if ! command -v cc >/dev/null; then
    echo 'no cc: cannot build the engine of the tour'
    exit 77
fi

# As from the root of the repository, but what is written stays here.
mkdir "$folder/root" "$folder/root/build"
ln -s "$root/conformance" "$root/docs" "$root/ref" "$folder/root"
ln -s "$(dirname "$cts")" "$folder/root/build/bin"

# blocks PAGE...: a file for each command, N.command, and its output, N.want.
blocks()
{
    awk -v to="$folder" '
        /^```/ { inside = !inside; n += shown; shown = 0; next }
        inside && /^\$ / {
            n += shown
            shown = 1
            print substr($0, 3) >(to "/" n ".command")
            printf "" >(to "/" n ".want")
            next
        }
        inside && shown { print >(to "/" n ".want") }' "$@"
}

# differ WANT GOT: the first line that is not as wanted, or nothing.
differ()
{
    sed 's/ *$//' "$2" | awk -v want="$1" '
        BEGIN {
            while ((getline line < want) > 0) {
                sub(/ *$/, "", line)
                if (line == "...") {
                    gap[n + 1] = 1
                } else {
                    wanted[++n] = line
                }
            }
            at = 1
        }
        at <= n && $0 == wanted[at] { at++; next }
        !gap[at] && !failed { failed = 1; print "got: " $0 }
        END {
            if (at <= n)
                print "missing: " wanted[at]
        }'
}

blocks "$root/docs/tour.md" "$root/README.md"
n=0
while [ -f "$folder/$n.command" ]; do
    command=$(cat "$folder/$n.command")
    (cd "$folder/root" && timeout 300 bash -c "$command") \
        >"$folder/$n.got" 2>"$folder/$n.err"
    result "$command" "$(differ "$folder/$n.want" "$folder/$n.got")"
    n=$((n + 1))
done
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

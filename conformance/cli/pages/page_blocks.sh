# SPDX-License-Identifier: Apache-2.0
#
# page_blocks.sh - what pages show is what the program prints; tests of pages
# source it behind checks.sh. A block that begins with "$ " holds commands and
# what they print. "..." in a line of its own stands for any lines. Blanks at
# the end of a line do not count.
# shellcheck shell=bash

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)

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

# run_blocks [LEFT-OUT]: in this order; a command that the pattern matches is not
# run, and $n is how many there are.
run_blocks()
{
    local command
    n=0
    while [ -f "$folder/$n.command" ]; do
        command=$(cat "$folder/$n.command")
        if [ -n "${1:-}" ] && [[ $command =~ $1 ]]; then
            echo "not here: $command"
        else
            (cd "$folder/root" && timeout 300 bash -c "$command") \
                >"$folder/$n.got" 2>"$folder/$n.err"
            result "$command" "$(differ "$folder/$n.want" "$folder/$n.got")"
        fi
        n=$((n + 1))
    done
}

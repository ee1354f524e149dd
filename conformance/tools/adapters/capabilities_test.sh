#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# capabilities_test.sh - the table of capabilities in docs/results.md says of
# each one whether an implementation claims it, as its kept records do, and has
# a reason where it does not. A capability that has no row all of them claim.
# The check is then shown pages that are wrong.
#
# usage: capabilities_test.sh FSDP-CTS
set -euo pipefail

cts=$(realpath "$1")
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# In the order of the columns; of all that was kept (`kept` says how), as what is
# claimed grows.
for set in pytorch-fsdp2 pytorch-fsdp1 fairscale-fsdp deepspeed-zero3; do
    {
        cat "$root/fixtures/records/$set"*/*/case.json
        for packed in "$root/fixtures/records/$set"*/*.tar.xz; do
            xz -dc "$packed" | tar -xO ./case.json
        done
    } |
        grep -o '"claims": \[[^]]*\]' | grep -o '"[^"]*"' | tr -d '"' |
        LC_ALL=C sort -u | paste -sd' '
done >"$folder/claims"
"$cts" list claims |
    awk '$2 != "adapter" && $1 != "devices" { print $1 }' >"$folder/all"

# wrong PAGE: a line for each thing that is wrong there.
wrong()
{
    awk -F ' *[|] *' '
        FILENAME == ARGV[1] {
            n++
            m = split($0, words, " ")
            for (i = 1; i <= m; i++) {
                claims[words[i], n + 2] = 1
            }
            next
        }
        FILENAME == ARGV[2] { all[++known] = $1; is_known[$1] = 1; next }
        $0 == "| claim | FSDP2 | FSDP1 | FairScale | ZeRO-3 |" { inside = 1 }
        !/^[|]/ { inside = 0 }
        inside && /^[|] `/ {
            claim = $2
            gsub(/`/, "", claim)
            if (!is_known[claim] || has[claim]++) {
                print claim ": no capability, or twice"
            }
            if (NF != n + 3) {
                print claim ": not a cell for each"
            }
            for (i = 3; i < n + 3; i++) {
                if ($i == "" || ($i ~ /^claimed/) != ((claim, i) in claims)) {
                    print claim ", column " i - 2 ": \"" $i "\""
                }
            }
        }
        END {
            for (c = 1; c <= known; c++) {
                for (i = 3; i < n + 3 && !has[all[c]]; i++) {
                    if (!((all[c], i) in claims)) {
                        print all[c] ": no row, and column " i - 2 " lacks it"
                    }
                }
            }
        }' "$folder/claims" "$folder/all" "$1"
}

page=$root/docs/results.md
[ "$(wc -w <"$folder/claims")" -gt 100 ] || { echo 'no claims'; exit 1; }
wrong "$page" >"$folder/found"
if [ -s "$folder/found" ]; then
    echo "docs/results.md, capabilities:"
    cat "$folder/found"
    exit 1
fi
bad=0

# shown WHAT EXPRESSION: a page that sed has changed is found.
shown()
{
    sed "$2" "$page" >"$folder/page"
    if cmp -s "$page" "$folder/page" || [ -z "$(wrong "$folder/page")" ]; then
        echo "FAIL $1: not found"
        bad=1
    fi
}

shown 'claimed, and is not' 's/^\(| `fp16` .*| \)float16 is refused/\1claimed/'
shown 'not claimed, and is' 's/^| `fp16` | claimed/| `fp16` | has it not/'
shown 'no reason' 's/^| `serial` | [^|]*|/| `serial` | |/'
shown 'no row' '/^| `serial` |/d'
shown 'twice' '/^| `serial` |/p'
shown 'no such capability' 's/^| `serial`/| `seriall`/'
shown 'a cell less' 's/^\(| `serial` | \)[^|]*| /\1/'
echo "$(wc -l <"$folder/all") capabilities of four"
exit $bad

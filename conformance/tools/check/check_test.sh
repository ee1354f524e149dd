#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# check_test.sh - `fsdp-cts check` where there is no PyTorch: kept records are
# judged, what is no record or no option is refused in one line, and Python's
# part is played by a shell script that brings kept records, or fails.
#
# usage: check_test.sh FSDP-CTS [INCLUDE-FOLDER]
set -uo pipefail
# shellcheck source=conformance/cli/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../cli/checks.sh"
kept=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../../../fixtures/check")
pages=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../../../docs")
cd "$folder" || exit 1

# says CODE TEXT ARGUMENT...: that exit code, and TEXT is printed, on one line.
says()
{
    local code=$1 text=$2 why='' got

    shift 2
    timeout 60 "$cts" check "$@" >out 2>&1
    got=$?
    if [ "$got" -ne "$code" ]; then
        why="exit $got, not $code: $(head -c 300 out)"
    elif ! grep -F -- "$text" out >/dev/null; then
        why="no '$text': $(head -c 1000 out)"
    elif [ "$code" -ge 64 ] && [ "$(wc -l <out)" -ne 1 ]; then
        why="not one line: $(head -c 300 out)"
    fi
    result "check $*" "$why"
}

says 0 'usage: fsdp-cts check FILE.py' --help
says 0 'own.local-grad' --list
says 0 CONFORMANT "$kept/mlp"
says 0 'own.frozen-still' "$kept/frozen"
says 0 'under fsdp1, 2 ranks' "$kept/fsdp1"
says 1 'NON-CONFORMANT' "$kept/divisor"
says 1 'FAIL     own.reduced: step 0, rank 0, unit inner.1, parameter inner.1.0.weight, element 0: reduced to' \
    "$kept/divisor"
says 1 'Look first at own.reduced' "$kept/divisor"
says 1 'Look first at own.optimizer-holds' "$kept/accelerate-fsdp1-flat"
says 0 'own.evaluated' "$kept/evaluated"
says 0 'Not shown: how often' "$kept/deepspeed-zero3"
says 64 'needs one FILE.py'
says 64 'needs one FILE.py' a.py b.py
says 64 'a number from 2 to 8' a.py --ranks 1
says 64 'a number from 1 to' a.py --timeout none
says 64 'unknown' a.py --rankz 2
says 65 'no.py: No such file' no.py

# What other libraries prepare: the rows of docs/check-models.md.
for record in accelerate-ddp accelerate-fsdp2 accelerate-fsdp1 \
    accelerate-fsdp1-flat lightning-ddp lightning-fsdp2 deepspeed-zero3 \
    deepspeed-zero2 deepspeed-zero1; do
    "$cts" check "$kept/$record" >out 2>&1
    row="| \`$record\` | $(sed -n '1s/^[^:]*: //p' out) | $(tail -n 1 out) |"
    why=''
    grep -F -- "$row" "$pages/check-models.md" >/dev/null || why="no row '$row'"
    result "docs/check-models.md: $record" "$why"
done

# What is no record.
mkdir empty whole
says 65 'unsharded.json' empty
cp "$kept"/mlp/* whole
sed 's/"steps": 3/"steps": 4/' "$kept/mlp/rank-1.json" >whole/rank-1.json
says 65 'of another run' whole
cp "$kept/mlp/rank-0.json" whole/rank-1.json
says 65 "another rank's" whole
head -c 1000 "$kept/mlp/rank-1.json" >whole/rank-1.json
says 65 'rank-1.json' whole
sed 's/"rank"/"rink"/' "$kept/mlp/rank-1.json" >whole/rank-1.json
says 65 'rank-1.json' whole

# Evaluations in the optimizer's step: a record without those of the unsharded
# run; a microbatch behind that.
mkdir evaluated
cp "$kept"/evaluated/* evaluated
sed 's/^\( *\[[01],1,0,false,"forward",\)[0-9]*/\1-1/' \
    "$kept/evaluated/unsharded.json" >evaluated/unsharded.json
says 1 "in the evaluations of the optimizer's step, 0 expected" evaluated
sed 's/^ \[0,1,0,/ [0,2,0,/' "$kept/evaluated/unsharded.json" \
    >evaluated/unsharded.json
says 65 'microbatch 2' evaluated

# A rank that did not come to its end: what it would be compared with is not
# there.
sed -n '1,/"saved"/p' "$kept/mlp/rank-1.json" |
    sed 's/"returned", "place": ""/"hung", "place": "step 1, in 3"/' >head
{ cat head && sed -n 's/^"\([a-z]*\)": \[.*/"\1": []/p' \
    "$kept/mlp/rank-1.json" | paste -sd, && echo '}'; } >whole/rank-1.json
says 1 'FAIL     own.completes: rank 1 hung: step 1, in 3' whole
says 1 'blocked  own.tied' whole

# JSON says the same.
says 1 '"id": "own.reduced"' "$kept/divisor" --json
says 1 '"verdict": "NON-CONFORMANT"' "$kept/divisor" --json
python3 -c "import json; json.load(open('out'))" || result 'JSON' 'it is none'

# Python, as a script that brings records, or says what is wrong.
echo 'nothing' >a.py
cat >brings <<TEXT
#!/bin/sh
while [ "\$1" != --out ]; do shift; done
cp $kept/mlp/* "\$2"
TEXT
printf '#!/bin/sh\necho "fsdp-cts check: a.py: no" >&2\nexit 65\n' >refuses
printf '#!/bin/sh\nexit 3\n' >fails
chmod +x brings refuses fails
says 0 CONFORMANT a.py --python ./brings
says 65 'a.py: no' a.py --python ./refuses
says 64 'nowhere: No such file' a.py --python ./nowhere
timeout 60 "$cts" check a.py --python ./fails >out 2>&1
[ $? -eq 2 ] && why='' || why='the exit code is not 2'
result 'Python fails: no verdict' "$why"
says 0 CONFORMANT a.py --python ./brings --records new
[ -f new/rank-1.json ] && why='' || why='there are none'
result 'records are kept' "$why"
says 64 'a new or an empty folder' a.py --python ./brings --records new
left=$(find "${TMPDIR:-/tmp}" -maxdepth 1 -name 'fsdp-cts-check-*' \
    -user "$(id -u)" -newer a.py 2>/dev/null | head -n 1)
[ -z "$left" ] || echo "note: $left, perhaps of another run"

finish 44

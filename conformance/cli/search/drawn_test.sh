#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# drawn_test.sh - scripts that are drawn: played by seed, the same each time; a
# failing one is made smaller, and its id and its text fail in the same way.
#
# usage: drawn_test.sh FSDP-CTS [INCLUDE-FOLDER]
set -uo pipefail

# shellcheck source=conformance/cli/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/../checks.sh"
cd "$folder" || exit 1

# run NAME OPTION ...: its exit code goes to $code, its words to NAME and
# NAME.err.
code=0
run()
{
    local name=$1
    shift
    code=0
    "$cts" run "$@" >"$name" 2>"$name.err" || code=$?
}

run right --engine ref,impl --scripts 12 --seed 40
why=$([ "$code" -eq 0 ] || echo "code $code: $(tail -3 right)"
    [ "$(grep -c ': 12 scripts drawn by .* 0 of them fail$' right)" -eq 2 ] ||
        echo "says $(head -c 300 right)")
result 'two engines pass twelve scripts' "$why"

run fresh --engine ref --scripts 1 --quiet
seed=$(sed -n 's/^fsdp-cts: --seed \([0-9]*\)$/\1/p' fresh.err)
run again --engine ref --scripts 1 --quiet --seed "${seed:-none}"
why=$([ "$code" -eq 0 ] || echo "code $code: $(cat again.err)"
    cmp fresh again 2>&1)
result 'a seed that nobody knew is said, and gives the same' "$why"

seq 1 400 >"a text"
run wrong --engine ref --mutant first-rate-for-ever --scripts 8 --seed 1 \
    --text 'a text'
why=$([ "$code" -eq 1 ] || echo "code $code: $(head -c 300 wrong.err)")
result 'a wrong engine fails' "$why"

id=$(sed -n 's/^# \(script\..*\)$/\1/p' wrong)
cause=$(grep '^fail ' wrong)
again=$(sed -n '/^  rerun  /{s///p;q;}' wrong)
written=$(sed -n '/^--$/,/^$/p' wrong | grep -c .)
why=$([ "${#id}" -gt 0 ] && [ "${#id}" -lt 160 ] || echo "its id is '$id'"
    [ "$written" -lt 12 ] || echo "it is not small: $written lines")
result 'what fails is made smaller, and has an id' "$why"
why=$([[ $again == "fsdp-cts run --engine ref --mutant first-rate-for-ever "*"--text 'a text' --script '$id' --case "* ||
    $again == "fsdp-cts run --engine ref --mutant first-rate-for-ever "*"--text 'a text' --script $id --case "* ]] ||
    echo "says $again")
result 'the line that plays it again keeps --text, quoted' "$why"

run by-id --engine ref --mutant first-rate-for-ever --script "$id" --partial-ok
why=$([ "$code" -eq 1 ] || echo "code $code: $(head -c 300 by-id.err)"
    [ "$(grep -m 1 '^fail ' by-id)" = "$cause" ] || echo 'another cause')
result 'its id fails in the same way' "$why"

sed -n '/^script 1$/,/^$/p' wrong >text
run by-text --engine ref --mutant first-rate-for-ever --script text --partial-ok
why=$([ "$code" -eq 1 ] || echo "code $code: $(head -c 300 by-text.err)"
    [ "$(grep -m 1 '^fail ' by-text)" = "$cause" ] || echo 'another cause')
result 'its text, too' "$why"

run right-id --engine ref --script "$id" --partial-ok --quiet
why=$([ "$code" -eq 0 ] || echo "code $code: $(head -c 300 right-id)")
result 'a right engine passes it' "$why"

# The first thing that is summoned is looked at by another check than the rest.
printf '%s\n' 'script 1' \
    'case mlp.seed.natural.full-shard.k2.flat.layer.rank.s.sgd' -- \
    'pass 0.0 s' 'step lr 0.05' 'summon 0' summon >summoned
run no-look --engine ref --script summoned --partial-ok --quiet
why=$([ "$code" -eq 0 ] || echo "code $code: $(head -c 300 no-look)")
result 'a script that summons, and shows nothing else, has a verdict' "$why"

run unclaimed --engine unsharded --scripts 1 --seed 1
why=$([ "$code" -eq 77 ] || echo "code $code"
    ! grep 'drawn: ' unclaimed.err
    grep -q 'named scripts only' unclaimed || echo "says $(cat unclaimed)")
result 'an engine that does not claim scripts plays none' "$why"

run beside --engine ref,unsharded --scripts 1 --seed 1
why=$([ "$(grep '^drawn: ' beside.err)" = 'drawn: ref: 1 scripts' ] ||
    echo "says $(cat beside.err)")
result 'progress is of the engines that play' "$why"

refused() # WORDS OPTION ...
{
    local words=$1
    shift
    run refused --engine ref "$@"
    why=$([ "$code" -eq 64 ] || echo "code $code"
        grep -q -- "$words" refused.err || echo "says $(cat refused.err)")
    result "refused: $*" "$why"
}
refused 'keeps nothing' --scripts 2 --seed 1 --records kept
refused 'list scripts --draw' --scripts 2 --seed 1 --dry-run
refused 'a number from 1' --scripts 0
refused 'generator 1 drew it' --script script.1.19.30b-2-008
refused 'generator 99 drew it' --script script.99.1
refused 'a drawn script is' --script script.2.x

# An adapter that plays nothing looks at what it is asked.
cat >adapter.py <<'END'
import json
import sys

CLAIMS = ["per-parameter", "flat", "full-shard", "fold-any", "sgd", "eval",
          "no-sync", "scripts", "workload-mlp", "wrap-layer", "step-drops"]


def uses_again(text):
    """A repeat is looked at as if it were played once."""
    there = used = False
    for line in text.split(";"):
        if used and line.startswith(("pass ", "step ")):
            return True
        there = (there or line.startswith("pass ")) and line != "zero"
        used = there and (used or line.startswith("step "))
    return False


verb, job = sys.argv[1:]
if verb == "claims":
    with open(job + "/claims.json", "w") as f:
        json.dump({"version": 1, "engine": "looks", "engine_version": "1",
                   "claims": CLAIMS}, f)
else:
    with open("asked", "a") as f:
        for name in json.load(open(job + "/cases.json"))["cases"]:
            case = json.load(open(f"{job}/{name}/case.json"))
            text = case["script"]
            print("clean" if case["case"]["workload"] == "mlp" and
                  case["case"]["strategy"] == "full-shard" and
                  not uses_again(text) and not any(
                      word in text for word in
                      (" at ", ";! ", ";clip ", ";save ", ";again", ";unshard",
                       "until", ";assign ", "scale ")) else text, file=f)
END
if command -v python3 >/dev/null; then
    run adapter --adapter 'python3 adapter.py' --scripts 40 --seed 1
    why=$([ "$code" -eq 2 ] || echo "code $code: $(head -c 300 adapter.err)"
        grep -q '^looks: .* 0 of them fail.*without a verdict' adapter ||
            echo "says $(head -c 300 adapter)")
    result 'an adapter without records has no verdict of scripts' "$why"
    why=$([ "$(grep -c . asked)" -ge 10 ] || echo "asked $(grep -c . asked)"
        grep -v '^clean$' asked)
    result 'it is asked what it claims' "$why"
    : >asked
    run one --adapter 'python3 adapter.py' --script 'script 1;--;pass 0.0 s' \
        --case mlp.seed.natural.full-shard.k2.flat.layer.rank.s.sgd
    result 'and a script of ours' "$([ "$(cat asked)" = clean ] ||
        cat one.err)"
    finish 19
else
    finish 16
fi

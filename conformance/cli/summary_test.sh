#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# summary_test.sh - what pipelines show of a report: Markdown, annotations, code
# quality; and the commands of the samples and of the action, run as a pipeline
# would run them.
#
# usage: summary_test.sh FSDP-CTS INCLUDE-FOLDER
set -uo pipefail

# shellcheck source=conformance/cli/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"
ci=$(realpath "$2/../../ci")
cd "$folder" || exit 1
few=(--case 'linear.small.*.full-shard.k2.*' --partial-ok)

# has FILE TEXT: nothing, or that it is not in a line of it
has()
{
    grep -qF -- "$2" "$1" || echo "not in $1: $2"
}

"$cts" run --engine ref "${few[@]}" --report right.jsonl --quiet >out 2>&1
"$cts" run --engine ref --mutant divide-twice "${few[@]}" --report wrong.jsonl \
    --quiet >out 2>&1

# ---- Markdown ----
"$cts" summary right.jsonl >right.md 2>err
result 'Markdown of an engine that passes' "$(
    grep -q '^### [A-Z]*: ref$' right.md || head -n 1 right.md
    has right.md '| level | pass | fail | blocked |'
    ! grep -n 'fail reduce\|| failed |' right.md
)"
"$cts" summary wrong.jsonl >wrong.md 2>err
code=$?
cases=$(grep -c '"type": *"item".*"requirement": *"reduce.scale".*"outcome": *"fail"' \
    wrong.jsonl)
result 'Markdown of one that fails' "$(
    [ "$code" -eq 0 ] || echo "exit $code"
    [ "$(head -n 1 wrong.md)" = '### NON-CONFORMANT: ref' ] ||
        head -n 1 wrong.md
    has wrong.md 'look at this first:'
    has wrong.md "| \`reduce.scale\` (MUST) | $cases |"
    # A table's row has as many cells as its head.
    awk -F '[^\\\\][|]' '/^[|] `/ && NF != 4' wrong.md
)"

# ---- Annotations ----
"$cts" summary wrong.jsonl --annotations >wrong.txt 2>err
"$cts" summary right.jsonl --annotations >right.txt 2>err
result 'annotations' "$(
    has wrong.txt '::error title=reduce.scale (MUST) of ref::Reduced'
    head -n 1 wrong.txt | grep -v reduce.scale
    has wrong.txt '%0Arerun: fsdp-cts run --engine ref --mutant divide-twice'
    grep -v '^::\(error\|warning\|notice\) title=[^:,]*::.' wrong.txt
    ! grep -n '^::error' right.txt
)"

# ---- Code quality ----
"$cts" summary wrong.jsonl --code-quality 'src/a "b".c' >wrong.json 2>err
"$cts" summary right.jsonl --code-quality mine.c >right.json 2>err
result 'code quality' "$(
    [ "$(tr -d '\n' <right.json)" = '[]' ] || cat right.json
    has wrong.json '"check_name": "reduce.scale"'
    has wrong.json '"path": "src/a \"b\".c"'
    ! command -v python3 >/dev/null || python3 - <<'END' 2>&1
import json
found = json.load(open("wrong.json", encoding="utf-8"))
assert found, "nothing was found"
prints = [one["fingerprint"] for one in found]
assert len(set(prints)) == len(prints), prints
for one in found:
    assert one["severity"] in ("major", "minor"), one
    assert one["description"] and one["location"]["lines"]["begin"] == 1, one
END
)"

# ---- Drawn scripts ----
# A report that only they make NON-CONFORMANT.
drawn='"drawn":{"generator":2,"seed":7,"played":200,"failed":2,"incomplete":false,"first":"script.2.7.of"},'
sed '/"type":"footer"/{s/"verdict":"[A-Z]*"/'"$drawn"'"verdict":"NON-CONFORMANT"/
    s/"reason":"[^"]*"/"reason":"2 of 200 drawn scripts fail: script.2.7.of"/}' \
    right.jsonl >drawn.jsonl
"$cts" summary drawn.jsonl >drawn.md 2>err
"$cts" summary drawn.jsonl --annotations >drawn.txt 2>>err
"$cts" summary drawn.jsonl --code-quality mine.c >drawn.json 2>>err
"$cts" report drawn.jsonl --junit drawn.xml --quiet >out 2>>err
rerun='fsdp-cts run --engine ref --script script.2.7.of'
result 'drawn scripts that fail are everywhere' "$(
    cat err
    has drawn.md "$rerun"
    has drawn.txt "::error title=scripts.drawn of ref::"
    has drawn.txt "%0Arerun: $rerun"
    has drawn.txt '::notice title=NON-CONFORMANT::2 of 200 drawn'
    has drawn.json '"fingerprint": "fsdp-cts:ref:scripts.drawn"'
    has drawn.xml ' failures="1" errors="0"'
    has drawn.xml '<testcase classname="scripts.drawn" name="script.2.7.of">'
    has drawn.xml "rerun: $rerun<"
)"

sed 's/"failed":2,"incomplete":false/"failed":0,"incomplete":true/
    s/NON-CONFORMANT/INCOMPLETE/' drawn.jsonl >without.jsonl
"$cts" report without.jsonl --partial-ok --junit without.xml --quiet >out 2>err
code=$?
result 'drawn scripts without a verdict do not pass' "$(
    [ "$code" -eq 2 ] || echo "exit $code: $(cat out err)"
    has without.xml ' failures="0" errors="1"'
)"

# ---- The action's gate, as a runner calls it ----
# gate NAME EXPECTED ARGUMENT...
gate()
{
    local name=$1 expected=$2 got
    shift 2
    rm -f page output
    PATH=$(dirname "$cts"):$PATH GITHUB_STEP_SUMMARY=page GITHUB_OUTPUT=output \
        "$ci/action/gate" "$@" >out 2>err
    got=$?
    [ "$got" -eq "$expected" ] || echo "$name: exit $got: $(tail -n 2 out err)"
}
result 'the gate lets an engine pass' "$(
    gate right 0 ref gated "${few[@]}"
    has output code=0
    has page '| level |'
    [ -s gated/junit.xml ] || echo 'no JUnit'
)"
result 'and stops a wrong one' "$(
    gate wrong 1 ref gated --mutant divide-twice "${few[@]}"
    has output code=1
    has page '### NON-CONFORMANT'
    has out '::error title=reduce.scale'
)"
result 'and one that is not there' "$(
    gate missing 64 ./missing.so gated "${few[@]}"
    has out '::error title=fsdp-cts::There is no report'
    [ ! -e gated/report.jsonl ] || echo 'a report of before was left'
)"

# ---- GitLab's commands ----
# commands SECTION: those of the sample, with a plug-in of ours.
commands()
{
    awk -v section="  $1:" '$0 == section { on = 1; next }
        /^  [a-z]/ { on = 0 }
        on { sub(/^ *- /, ""); print }' "$ci/samples/engine-gitlab-ci.yml"
}
result "GitLab's commands" "$(
    mkdir -p .fsdp-cts/bin
    ln -sf "$cts" .fsdp-cts/bin/fsdp-cts
    export ENGINE=ref OPTIONS="--mutant divide-twice ${few[*]}" SOURCE=engine.c
    commands script >script.sh
    PATH=$PWD/.fsdp-cts/bin:$PATH bash -e script.sh >out 2>&1
    code=$?
    [ "$code" -eq 1 ] || echo "script: exit $code, $(tail -n 2 out)"
    bash -e <(commands after_script) >out 2>&1 || tail -n 2 out
    has fsdp.xml '<testsuites'
    has fsdp-quality.json '"path": "engine.c"'
)"

# ---- What is wrong ----
# refused WHAT CODE TEXT ARGUMENT...
refused()
{
    local what=$1 code=$2 text=$3 got
    shift 3
    "$cts" summary "$@" >out 2>err
    got=$?
    result "refused: $what" "$(
        [ "$got" -eq "$code" ] || echo "exit $got"
        [ "$(wc -l <err)" -eq 1 ] || cat err
        has err "$text"
        [ ! -s out ] || head -n 2 out
    )"
}
refused 'no report' 64 'needs one report'
refused 'two reports' 64 'needs one report' right.jsonl wrong.jsonl
refused 'two forms' 64 'takes one form' right.jsonl --annotations \
    --code-quality x
refused 'no path' 64 "'--code-quality' needs a value" right.jsonl --code-quality
refused 'an unknown option' 64 "unknown option '--html'" right.jsonl --html
refused 'a file that is not there' 65 'missing.jsonl: No such file' \
    missing.jsonl
head -n 5 right.jsonl >cut.jsonl
refused 'a report that was cut' 65 'cut.jsonl' cut.jsonl

finish 17

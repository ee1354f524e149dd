#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# submit_test.sh - a bundle that is whole is judged as its records are; one
# that is changed, short of something, has more, or leads elsewhere is refused;
# what fails must be explained, and nothing else.
#
# usage: submit_test.sh FSDP-CTS [INCLUDE-FOLDER]
set -uo pipefail

# shellcheck source=conformance/cli/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../cli/checks.sh"

# Runs the command; sets code, and leaves out and err.
call()
{
    "$cts" "$@" >"$folder/out" 2>"$folder/err"
    code=$?
}

want() # WHAT CODE PATTERN COMMAND ...
{
    local what=$1 expected=$2 pattern=$3

    shift 3
    call "$@"
    result "$what" "$([ $code = "$expected" ] &&
        grep -q -- "$pattern" "$folder/out" "$folder/err" ||
        echo "exit $code, not $expected with '$pattern': $(cat \
            "$folder/out" "$folder/err")")"
}

cat >"$folder/about.json" <<'END'
{
 "version": 1,
 "name": "The reference",
 "column": "ref",
 "release": "ref 1",
 "url": "",
 "hardware": "a CPU",
 "software": ["Linux"],
 "adapter": "",
 "command": "fsdp-cts run --engine ref --records DIR",
 "seed": 0,
 "made": "2026-11-21",
 "notes": ""
}
END
other=linear.small.exact.full-shard.k4.flat.layer.rank.ns.sgd
call list cases
grep -qx "$other" "$folder/out" || { echo "no case $other"; exit 1; }
cp "$folder/out" "$folder/cases"
id=$(grep -m1 '^mlp\.odd\.natural\.full-shard\.k3\.flat\.layer\.rank' \
    "$folder/out")
call run --engine ref --case "$id,$other" --records "$folder/records" --quiet \
    --record-only
[ $code = 0 ] || { cat "$folder/err"; exit 1; }
call run --engine ref --mutant divide-twice --case "$id,$other" --quiet \
    --records "$folder/wrong" --record-only
[ $code = 0 ] || { cat "$folder/err"; exit 1; }

submit() # RECORDS BUNDLE [OPTION ...]
{
    local records=$1 bundle=$2

    shift 2
    rm -rf "${folder:?}/$bundle"
    "$cts" submit "$folder/$records" --about "$folder/about.json" --quiet \
        --bundle "$folder/$bundle" "$@"
}

# Makes a manifest of what is there, as somebody does who wants to be believed.
seal() # BUNDLE
{
    (cd "$1" && rm -f manifest.json &&
        find . -type f | sed 's|^\./||' | LC_ALL=C sort |
        while read -r file; do
            printf '["%s", %s, "%s"]\n' "$file" "$(stat -c %s "$file")" \
                "$(sha256sum <"$file" | cut -c 1-64)"
        done | paste -sd, | sed 's/^/{"version": 1, "files": [/; s/$/]}/' \
        >"$folder/manifest" && mv "$folder/manifest" manifest.json)
}

# A copy to spoil.
fresh()
{
    rm -rf "$folder/b"
    cp -r "$folder/good" "$folder/b"
}

# ---- Made and checked ----
want 'all cases' 2 'cases that are claimed have a record' submit \
    "$folder/records" --about "$folder/about.json" --bundle "$folder/good"
result 'nothing is begun then' "$([ ! -e "$folder/good" ] || echo it is)"
submit records good --partial >"$folder/out" 2>"$folder/err"
result 'submit' "$([ $? = 0 ] || cat "$folder/err")"
hash=$(sed -n 's/^bundle //p' "$folder/out")
result 'its hash is that of the manifest' "$([ "$hash" = \
    "$(sha256sum <"$folder/good/manifest.json" | cut -c 1-64)" ] ||
    cat "$folder/out")"
since=$("$cts" list requirements --json |
    sed -n 's/.*"since": *"\([^"]*\)".*/\1/p' | sort -Vu | sed -n '$p')
result 'the specification is that of the newest requirement' "$(grep -q \
    "\"specification\": \"$since\"" "$folder/good/submission.json" ||
    echo "$since")"
want 'a selection' 2 'a selection' verify "$folder/good" --strict
want 'that is asked for' 0 "SHA-256 $hash" verify "$folder/good" --partial-ok
want 'in a word' 0 PASSED verify "$folder/good" --partial-ok --quiet
want 'as JSON' 0 "\"bundle\": \"$hash\"" verify "$folder/good" --partial-ok \
    --json
want 'a report of it' 0 PASSED verify "$folder/good" --partial-ok --quiet \
    --report "$folder/report"
result 'the report' "$(tail -n 1 "$folder/report" | grep -c '"footer"' |
    grep -vx 1)"
want 'a part of it' 64 'nothing can be selected' verify "$folder/good" \
    --case "$id"
want 'a bundle over another' 65 'exists' submit "$folder/records" --partial \
    --about "$folder/about.json" --bundle "$folder/good"
want 'no --about' 64 '--about' submit "$folder/records" --bundle "$folder/x"
want 'no such --about' 65 nonesuch submit "$folder/records" --partial \
    --about "$folder/nonesuch" --bundle "$folder/x"
sed 's/"seed": 0/"seed": -1/' "$folder/about.json" >"$folder/bad.json"
want 'a wrong --about' 65 seed submit "$folder/records" --partial \
    --about "$folder/bad.json" --bundle "$folder/x"
want '--help of submit' 0 '--about FILE' submit --help
want '--help of results' 0 'BUNDLE' results --help

# ---- Files ----
rank=records/$id/rank-1.json
fresh
printf ' ' >>"$folder/b/$rank"
want 'a file that is changed' 65 'rank-1.json.*bytes' verify "$folder/b"
fresh
truncate -s 100G "$folder/b/report.jsonl" 2>/dev/null &&
    want 'a report that is larger than any' 65 \
        'report.jsonl: 107374182400 bytes' verify "$folder/b"
fresh
sed -i 's/"rank": 1/"rank": 2/' "$folder/b/$rank"
want 'of the same size' 65 'rank-1.json: its SHA-256' verify "$folder/b"
fresh
rm "$folder/b/$rank"
want 'a file that is missing' 65 'rank-1.json: is in the manifest' verify \
    "$folder/b"
fresh
cp "$folder/b/$rank" "$folder/b/records/$id/rank-9.json"
want 'a file more' 65 'rank-9.json: is not in the manifest' verify "$folder/b"
fresh
touch "$folder/b/notes.txt"
want 'a file that no bundle has' 65 'notes.txt' verify "$folder/b"
fresh
touch "$folder/b/$(printf '\033[31m')"
want 'a name that would color the terminal' 65 '?\[31m' verify "$folder/b"
fresh
mkdir "$folder/b/records/empty"
want 'a folder without a file' 65 'empty' verify "$folder/b"
fresh
mkdir -p "$folder/b/records/$id/deep" && touch "$folder/b/records/$id/deep/x"
want 'a folder too deep' 65 'deep' verify "$folder/b"
fresh
mv "$folder/b/$rank" "$folder/elsewhere" &&
    ln -s "$folder/elsewhere" "$folder/b/$rank"
want 'a link' 65 'a link' verify "$folder/b"
fresh
mv "$folder/b/records" "$folder/moved" &&
    ln -s "$folder/moved" "$folder/b/records"
want 'a link to a folder' 65 'records: a link' verify "$folder/b"
rm -r "$folder/moved"
fresh
mkfifo "$folder/b/records/pipe"
want 'a pipe' 65 'neither' verify "$folder/b"
fresh
rm "$folder/b/manifest.json"
want 'no manifest' 65 'manifest.json' verify "$folder/b"
for path in ../elsewhere /etc/passwd "records/../../elsewhere" \
    "records/$id/../x/case.json" "records/$id//case.json" \
    "records/$id/rank-01.json" manifest.json; do
    fresh
    sed -i "0,/\[\"[^\"]*\"/s||[\"$path\"|" "$folder/b/manifest.json"
    want "the path $path" 65 'no bundle has a file' verify "$folder/b"
done
fresh
sed -i '0,/", [0-9]*,/s//", 99999999999999999999,/' "$folder/b/manifest.json"
want 'a huge number' 65 'manifest.json' verify "$folder/b"
fresh
sed -i 's/"files": \[/"files": [["report.jsonl", 1, "'"$hash"'"],/' \
    "$folder/b/manifest.json"
want 'a file twice' 65 'ascending' verify "$folder/b"
fresh
sed -i 's/"version": 1/"version": 2/' "$folder/b/manifest.json"
want 'a manifest of another version' 65 'this reader knows 1' verify \
    "$folder/b"
fresh
yes '[[[[[[[[[[' | head -c 1000000 | tr -d '\n' >"$folder/b/manifest.json"
want 'a million brackets' 65 'manifest.json' verify "$folder/b"

# ---- What it says, with a manifest that fits ----
fresh
seal "$folder/b"
want 'sealed again' 0 PASSED verify "$folder/b" --partial-ok --quiet
said() # WHAT EXPRESSION PATTERN [CODE]
{
    fresh
    sed -i "$2" "$folder/b/submission.json"
    cmp -s "$folder/good/submission.json" "$folder/b/submission.json" &&
        result "$1" 'nothing was spoiled'
    seal "$folder/b"
    want "$1" "${4-65}" "$3" verify "$folder/b"
}
said 'another specification' 's/"specification": "[^"]*"/"specification": "9.9"/' \
    'this program has.*take suite'
said 'another interpretation' 's/"interpretation": 1/"interpretation": 2/' \
    'take suite'
said 'other contents' 's/"content": "[^"]*"/"content": "2031.01"/' 'take suite'
said 'other cases' 's/"cases_sha256": "..../"cases_sha256": "0000/' 'take suite'
said 'a field more' 's/"records": true/"records": true, "extra": 1/' extra
said 'a field less' '/"commit"/d' commit
said 'another engine' 's/"engine": "[^"]*"/"engine": "mine"/' \
    'cannot be read\|records are of'
said 'a claim more' 's/"claims": \[/"claims": ["bf16", /' \
    "report.jsonl\|another engine"
said 'a claim less' 's/"claims": \["[^"]*", /"claims": [/' \
    "report.jsonl\|another engine\|do not call for"
said 'all cases' 's/"cases": \[.*/"cases": "whole",/; /^  "l[^{]*\],$/d; /^  "mlp[^{]*\],$/d' \
    'report.jsonl'
said 'a case twice' "s/\"cases\": \[/\"cases\": [\"$other\", /" ascending
said 'no such case' "s/$other/lineal.small/" "no case"
said 'no records' 's/"records": true/"records": false/' 'there are some'
fresh
rm -r "$folder/b/records"
seal "$folder/b"
want 'records that are not there' 65 'there are none' verify "$folder/b"
fresh
rm -r "$folder/b/records/$other"
seal "$folder/b"
want 'a case that was left out' 65 'report.jsonl' verify "$folder/b"
fresh
rm -r "$folder/b/records/$other"
sed -i "s/\"$other\",//" "$folder/b/submission.json"
grep -q "$other" "$folder/b/submission.json" && sed -i "s/\"$other\"//" \
    "$folder/b/submission.json"
tr -d '\n' <"$folder/b/submission.json" >"$folder/one" &&
    sed 's/\[ *"mlp/["mlp/; s/,  *\]/]/' "$folder/one" \
        >"$folder/b/submission.json"
seal "$folder/b"
want 'and is not said either' 65 'report.jsonl' verify "$folder/b"
fresh
cp -r "$folder/b/records/$id" \
    "$folder/b/records/${id/.odd./.seed.}"
seal "$folder/b"
want 'records of another case' 65 'do not call for' verify "$folder/b"
fresh
sed -i 's/"outcome":"pass"/"outcome":"skip"/' "$folder/b/report.jsonl"
seal "$folder/b"
want 'a report that says otherwise' 65 'report.jsonl' verify "$folder/b"
fresh
sed -i 's/"verdict":"INCOMPLETE"/"verdict":"CONFORMANT"/' \
    "$folder/b/report.jsonl"
seal "$folder/b"
want 'a verdict that nobody found' 65 'the verdict is CONFORMANT' verify "$folder/b"
fresh
sed -i '$d' "$folder/b/report.jsonl"
seal "$folder/b"
want 'a report without its end' 65 'footer' verify "$folder/b"
fresh
rm "$folder/b/report.jsonl"
seal "$folder/b"
want 'no report' 65 'report.jsonl' verify "$folder/b"
# All of it fits, but for a case that has no record.
third=$(grep -m1 '^mlp\.odd\.natural\.full-shard\.k2\.flat\.layer\.rank' \
    "$folder/cases")
fresh
sed -i "s/\"$id\"/\"$id\", \"$third\"/" "$folder/b/submission.json"
tr -d '\n' <"$folder/b/submission.json" | sed "s/\"$id\", \"$third\"/\"$third\", \"$id\"/" \
    >"$folder/one" && cp "$folder/one" "$folder/b/submission.json"
"$cts" verify "$folder/records" --case "$other,$third,$id" --quiet \
    --report "$folder/three" >"$folder/out" 2>&1
# A bundle has its cases in order of their ids.
awk '/"type":"footer"/ { id = "~" } /"type":"case"/ { split($0, part, "\"")
        id = part[8] } { print id "\t" $0 }' "$folder/three" |
    LC_ALL=C sort -s -t"$(printf '\t')" -k1,1 | cut -f2- \
    >"$folder/b/report.jsonl"
seal "$folder/b"
want 'a case without a record' 2 "missing  $third" verify "$folder/b"
want 'of a selection, too' 2 INCOMPLETE verify "$folder/b" --partial-ok --quiet
# Records of a wrong engine under the report of a right one.
fresh
rm -r "$folder/b/records/$id"
cp -r "$folder/wrong/$id" "$folder/b/records/"
seal "$folder/b"
want 'records of another run' 65 'report.jsonl' verify "$folder/b"
# What a folder of records would be compared with is made here, never taken.
fresh
mkdir "$folder/b/records/baseline"
cp -r "$folder/records/baseline"/* "$folder/b/records/baseline/"
seal "$folder/b"
want 'unsharded runs of its own' 65 'no bundle has' verify "$folder/b"

# ---- A report alone ----
submit records bare --partial --without-records >"$folder/out" 2>&1
result 'without records' "$([ -d "$folder/bare" ] && [ ! -e \
    "$folder/bare/records" ] || cat "$folder/out")"
want 'proves nothing' 2 'a report proves nothing' verify "$folder/bare" \
    --partial-ok
want 'and makes no page' 65 'no records' results "$folder/bare"
sed -i '/"type":"item"/s/"outcome":"pass"/"outcome":"skip"/' \
    "$folder/bare/report.jsonl"
seal "$folder/bare"
want 'its totals are added up' 65 'are said to be' verify "$folder/bare"

# ---- What fails, and why ----
submit wrong wrong-bundle --partial >"$folder/out" 2>&1
result 'a wrong engine is bundled, too' "$([ -d "$folder/wrong-bundle" ] ||
    cat "$folder/out")"
want 'and judged' 1 NON-CONFORMANT verify "$folder/wrong-bundle" --partial-ok
want 'and not explained' 65 'nothing explains it' results "$folder/wrong-bundle"
explain() # REQUIREMENT CASES WHOSE [more]
{
    printf '{"version": 1, "explanations": [{"requirement": "%s",
        "cases": "%s", "whose": "%s", "why": "a | b <i>"}%s]}' "$1" "$2" "$3" \
        "${4-}" >"$folder/explanations.json"
    submit wrong explained --partial \
        --explanations "$folder/explanations.json" \
        >"$folder/out" 2>"$folder/err"
    code=$?
}
sed -n 's/.*"requirement":"\([^"]*\)","case":"\([^"]*\)".*"outcome":"fail".*/\1 \2/p' \
    "$folder/wrong-bundle/report.jsonl" >"$folder/fails"
result 'what fails is one requirement' "$([ "$(cut -d' ' -f1 "$folder/fails" |
    sort -u)" = reduce.scale ] || cat "$folder/fails")"
explain reduce.scale '*' ours
result 'explained' "$([ $code = 0 ] || cat "$folder/err")"
want 'of releases' 0 '\*\*fail\*\* 2 of 2: `reduce.scale`' \
    results --releases "$folder/wrong-bundle"
want 'two of one release' 65 'two bundles of' results --releases \
    "$folder/wrong-bundle" "$folder/explained"
want 'of releases, a broken one' 65 'bare: report.jsonl' results --releases \
    "$folder/good" "$folder/bare"
want 'of releases, for programs' 64 'without --json' results --releases \
    "$folder/good" --json
want 'on the page' 0 'a \\| b' results "$folder/explained"
want 'without HTML' 0 '&lt;i>' results "$folder/explained"
want 'that is a failure' 0 '\*\*2 fail\*\*' results "$folder/explained" \
    "$folder/good"
want 'for programs' 0 '"whose": "ours"' results "$folder/explained" --json
call results "$folder/explained" "$folder/good" --html "$folder/page.html"
result 'a page' "$([ $code = 0 ] && [ ! -s "$folder/out" ] ||
    cat "$folder/err")"
result 'a row for each requirement that was judged' "$([ "$(grep -c \
    '<details class="case"' "$folder/page.html")" -gt 30 ] || echo 'it is not')"
result 'it says whose a failure is' "$(grep -q '>ours<' \
    <<<"$(sed -n '/id="r-reduce.scale"/,/<\/details>/p' \
        "$folder/page.html")" || echo 'it does not')"
result 'in which what a stranger wrote is text' "$(grep -q '&lt;i&gt;' \
    "$folder/page.html" && ! grep -q '<i>' "$folder/page.html" ||
    echo 'it is not')"
result 'and which needs nothing else' "$(sed 's/="[^"]*"/=""/g' \
    "$folder/page.html" | grep -nE '<[a-z][^>]* (src|on[a-z]+)=|url\(|<link')"
call results "$folder/bare" --html "$folder/none.html"
result 'no page of what is no bundle' "$([ $code = 65 ] &&
    [ ! -e "$folder/none.html" ] || echo "exit $code")"
explain reduce.scale 'mlp.*' ours
result 'half of it' "$([ $code = 65 ] && grep -q 'nothing explains' \
    "$folder/err" || cat "$folder/err")"
explain reduce.scale '*' ours ',{"requirement": "reduce.fold", "cases": "*",
    "whose": "ours", "why": "c"}'
result 'more than it' "$([ $code = 65 ] && grep -q 'does not fail' \
    "$folder/err" || cat "$folder/err")"
explain reduce.scale '*' ours ',{"requirement": "reduce.scale",
    "cases": "mlp*", "whose": "ours", "why": "c"}'
result 'twice' "$([ $code = 65 ] && grep -q 'explained twice' \
    "$folder/err" || cat "$folder/err")"
explain reduce.scale '*' nobody
result 'by nobody' "$([ $code = 65 ] && grep -q 'nobody' "$folder/err" ||
    cat "$folder/err")"
explain reduce.scale '*' ours
cp "$folder/explanations.json" "$folder/good/"
seal "$folder/good"
want 'of another bundle' 65 'does not fail' verify "$folder/good"

finish 57

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# report_html_test.sh - report --html: the page has what the report has, needs
# nothing from elsewhere, and shows names of any kind as text. How it looks is
# report_look_test.sh's.
#
# usage: report_html_test.sh FSDP-CTS [INCLUDE-FOLDER]
set -uo pipefail

# shellcheck source=conformance/cli/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/../checks.sh"
cd "$folder" || exit 1

for mutant in '' divide-twice; do
    "$cts" run --engine ref ${mutant:+--mutant $mutant} --workload mlp \
        --ranks 2 --strategy full-shard --partial-ok --quiet \
        --report "${mutant:-right}.jsonl" --records "${mutant:-right}" \
        >out 2>&1
done
cat right.jsonl divide-twice.jsonl >both.jsonl

page() # NAME [OPTION...]: NAME.html of NAME.jsonl; its exit code is $got
{
    local name=$1
    shift
    timeout 60 "$cts" report "$name.jsonl" --html "$name.html" --quiet "$@" \
        >out 2>err
    got=$?
}

# Every link within leads somewhere, and no id is there twice.
check_links() # FILE
{
    grep -oE ' id="[^"]*"' "$1" | sed 's/ id="//; s/"//' | sort >ids
    grep -oE ' href="[^"]*"' "$1" | sed 's/ href="//; s/"//' | sort -u >links
    uniq -d ids | sed 's/^/twice: /'
    grep -v '^#' links | sed 's/^/leads outside: /'
    sed 's/^#//' links | sort | comm -23 - <(uniq ids) | sed 's/^/nowhere: /'
}

# Tags of the page's own, and no attribute that fetches or runs anything.
check_contained() # FILE
{
    [ "$(grep -c '<script' "$1")" = 1 ] || echo "$(grep -c '<script' "$1") scripts"
    [ "$(grep -c '<style' "$1")" = 1 ] || echo 'not one style'
    sed 's/="[^"]*"/=""/g' "$1" | grep -nE -e '@import|url\(' \
        -e '<[a-z][^>]* (src|srcset|data|action|poster|on[a-z]+|style)=' \
        -e '<(link|img|iframe|object|embed|base|form)' | sed -n 1,3p
}

for name in right divide-twice both; do
    page "$name"
    want=$([ "$name" = right ] && echo 0 || echo 1)
    result "$name: exit" "$([ "$got" = "$want" ] || echo "$got: $(cat err)")"
    result "$name: links" "$(check_links "$name.html")"
    result "$name: nothing from elsewhere" "$(check_contained "$name.html")"
    cases=$(grep '"type":"case"' "$name.jsonl" | grep -vc '"not-claimed"')
    got=$(grep -c '<details class="case"' "$name.html")
    result "$name: cases" "$([ "$got" = "$cases" ] || echo "$got of $cases")"
    # What is asked has all that the program asks.
    "$cts" list requirements | grep -oE '^[a-z0-9-]+\.[a-z0-9.-]+' | sort >asked
    got=$(grep -oE 'id="r-[^"]*"' "$name.html" | sed 's/id="r-//; s/"//' |
        sort | comm -3 - asked)
    result "$name: what is asked" "$got"
    fails=$(grep -cE '"outcome":"(fail|error|timeout)"' "$name.jsonl")
    got=$(grep -c '<div class="failure"' "$name.html")
    result "$name: failures" "$([ "$got" = "$fails" ] || echo "$got of $fails")"
done
result 'a verdict' "$(grep -q '>NON-CONFORMANT<' divide-twice.html ||
    echo missing)"
first=$(sed -n '/class="first"/,/<\/div>/p' divide-twice.html)
result 'the first cause' "$(grep -q 'href="#r-reduce.scale"' <<<"$first" ||
    echo "$first")"
result 'leads to its case' "$(grep -qE 'href="#c0-[0-9]+">all' <<<"$first" ||
    echo "$first")"
result 'and has its bits' "$(grep -q 'of 32 bits differ' <<<"$first" ||
    echo "$first")"
# ---- The kill matrix -----------------------------------------------------
result 'a mistake that fails so, too' \
    "$(grep -q '<dt><a href="#k-divide-twice">' <<<"$first" || echo "$first")"
result 'where nothing fails there is none' "$(grep 'class="alike"' right.html)"
"$cts" list mutants | grep -oE '^[a-z][a-z0-9-]*' | sort >mutants
result 'all mutants' "$(grep -oE '<dt id="k-[^"]*"' right.html |
    sed 's/<dt id="k-//; s/"//' | sort | diff mutants -)"
marks() # FILE: of the drawing; a mark begins with M
{
    grep '<path class="kill"' "$1" | sed 's/.* d="//; s/".*//' | tr -cd M | wc -c
}
listed=$("$cts" list mutants | sed -n 's/.*killed by: *//p' | wc -w)
result 'all their marks' "$([ "$(marks right.html)" = "$listed" ] ||
    echo "$(marks right.html) of $listed")"
result 'what failed here is marked' \
    "$([ "$(grep -c '<rect class="here"' right.html)" = 0 ] &&
        grep -q '<rect class="here"' divide-twice.html || echo wrong)"

drawn=$(grep -c '<symbol id="m' both.html)
shown=$(grep -c '<use href="#m' both.html)
result 'what is the same is drawn once' \
    "$([ "$drawn" -gt 3 ] && [ "$shown" -ge $((2 * drawn)) ] ||
        echo "$drawn drawn, $shown shown")"
page right --requirement comm.order --partial-ok
result 'a part of it' "$([ "$got" = 0 ] || cat err)"
result 'has no other outcome' "$(grep -c '[0-9] pass<' right.html |
    grep -qx 0 && echo 'no pass')"

# ---- With the records ----------------------------------------------------
cp divide-twice.jsonl drawn.jsonl
page drawn --records divide-twice
result 'records: links' "$(check_links drawn.html)"
result 'records: nothing from elsewhere' "$(check_contained drawn.html)"
has() # WHAT PATTERN FILE
{
    result "$1" "$(grep -qE -- "$2" "$3" || echo "no $2")"
}
has 'a curve and its first loss that differs' \
    '>differs from step 1 on</text>' drawn.html
has 'of which both are said' 'is of step 1: [0-9.]+, expected [0-9.]+\.' \
    drawn.html
has 'collectives as expected' 'Every rank and step has what is expected' \
    drawn.html
has 'peaks of both ranks' '>rank 1</text><rect class="k0"' drawn.html
has 'the tensor that is wrong' 'Where layers\.0\.weight differs: reduced' \
    drawn.html
has 'all of it' '<p class="peak-text">512 of 512 elements' drawn.html
has 'windows' '<rect class="window"' drawn.html
has 'ranks that hold the same' 'In this step ranks 0, 1 hold the same' drawn.html
result 'are drawn once' \
    "$(grep -E '<figcaption>Memory over step [0-9]+, rank 1' drawn.html)"
# One rank holds less than the other when the pass ends.
cp -r divide-twice apart
for file in apart/*/rank-1.json; do
    sed -i -E 's/(\["end", 0, \[)[0-9]+/\11/' "$file"
done
cp divide-twice.jsonl ranks.jsonl
page ranks --records apart
has 'another rank, another picture' \
    '<figcaption>Memory over step [0-9]+, rank 1</figcaption>' ranks.html
result 'and not the same' "$(grep 'hold the same' ranks.html)"
"$cts" run --engine ref --mutant gather-twice --workload mlp --ranks 2 \
    --case mlp.seed.natural.full-shard.k2.flat.layer.rank.s.sgd.steps40 \
    --report more.jsonl --records more --quiet >out 2>&1
page more --records more
has 'a collective too many' '<b>[0-9]+</b> of [0-9]+</li>' more.html
has 'is outlined' '<rect class="k[0-9] off"' more.html
result 'where all is right nothing is' \
    "$(grep -c '<rect class="k[0-9] off"' drawn.html | grep -vx 0)"
for mutant in '' gives-up; do
    name=whole$mutant
    "$cts" run --engine ref ${mutant:+--mutant $mutant} \
        --case mlp.seed.natural.full-shard.k2.flat.layer.rank.s.sgd.steps40 \
        --report "$name.jsonl" --records "$name" --quiet >out 2>&1
    page "$name" --records "$name"
done
has 'losses that are all right' \
    "Every loss has the bits of the unsharded run's" whole.html
has 'losses of a run that ended early' \
    "The first 3 of 40 losses have the bits of the unsharded run's; the" \
    wholegives-up.html
timeout 20 "$cts" report both.jsonl --html no.html --records nowhere \
    >out 2>err
got=$?
result 'no such records' "$([ "$got" = 65 ] && [ "$(wc -l <err)" = 1 ] &&
    [ ! -e no.html ] || echo "exit $got: $(cat err)")"

# ---- Two runs ------------------------------------------------------------
cp divide-twice.jsonl now.jsonl
page now --against right.jsonl
result 'against: links' "$(check_links now.html)"
has 'what began to fail' \
    'began to fail</td><td><a href="#r-reduce.scale"' now.html
has 'the verdicts' 'CONFORMANT now; [0-9]+ cases of both runs, 0 new, 0 gone' \
    now.html
has 'a failure that is new says so' 'class="tag open">new<' now.html
has 'what it costs' '^<tr><td>launches</td>' now.html
cp right.jsonl now.jsonl
page now --against divide-twice.jsonl
has 'what is right again' \
    'is right again</td><td><a href="#r-reduce.scale"' now.html
cp right.jsonl now.jsonl
page now --against right.jsonl
result 'nothing, where nothing has changed' \
    "$(grep -E 'began to fail|is right again|no longer passes' now.html)"
has 'no figure changed' '<p class="dim">None.</p>' now.html
# A case that is new, one that is gone, and a peak that has grown.
cp more.jsonl now.jsonl
sed '/"type":"figures"/s/"peak.param-full":[0-9]*/"peak.param-full":1000/' \
    right.jsonl >less.jsonl
page now --against less.jsonl
has 'a figure that changed' '^<tr><td>peak.param-full</td>' now.html
has 'by how much' 'data-l="before">1[^0-9]+000</td>.*[+-][0-9.]+&#8239;%' \
    now.html
has 'collectives that changed' '^<tr><td>collectives.all-gather</td>' now.html
has 'cases of one run' '; 1 cases of both runs, 0 new, [1-9][0-9]* gone' now.html
for bad in nowhere.jsonl /dev/null; do
    rm -f now.html
    page now --against "$bad"
    result "against $bad" "$([ "$got" = 65 ] && [ "$(wc -l <err)" = 1 ] &&
        [ ! -e now.html ] || echo "exit $got: $(cat err)")"
done
sed 's/"engine":"ref"/"engine":"other"/' right.jsonl >other.jsonl
page now --against other.jsonl
result 'against another engine' "$([ "$got" = 65 ] &&
    grep -q 'ref: the earlier report is not of this engine' err ||
    echo "exit $got: $(cat err)")"
timeout 20 "$cts" report right.jsonl --against right.jsonl >out 2>err
got=$?
result 'against without a page' "$([ "$got" = 64 ] || echo "exit $got")"

# ---- Names of any kind ---------------------------------------------------
# As sed takes them: a backslash is two, and & is what was found.
evil='</title><script>alert(1)</script><b x=\\"y\\" onclick='"'z'"'>\&amp;'
marks='\\u202Egnp.exe\\u2066\\u200D'
sed -e "s|\"engine\":\"[^\"]*\"|\"engine\":\"$evil\"|" \
    -e "s|\"note\":\"[^\"]*\"|\"note\":\"$evil$marks\"|" \
    -e "s|\"unit_name\":\"[^\"]*\"|\"unit_name\":\"--><!--</svg>\"|" \
    -e "s|\"tensor\":\"[^\"]*\"|\"tensor\":\"]]></style>$marks\"|" \
    -e "s|\"units\":\[\"[^\"]*\"|\"units\":[\"</svg>$marks\"|" \
    -e "s|\"suite\":\"[^\"]*\"|\"suite\":\"</p><svg>\"|" \
    divide-twice.jsonl >evil.jsonl
page evil
result 'hostile names: exit' "$([ "$got" = 1 ] || echo "$got: $(cat err)")"
result 'hostile names: nothing of theirs is markup' \
    "$(check_contained evil.html)"
result 'hostile names: links' "$(check_links evil.html)"
result 'hostile names: shown as text' "$(grep -qF \
    '&lt;/title&gt;&lt;script&gt;alert(1)&lt;/script&gt;&lt;b x=&quot;y&quot; onclick=&#39;z&#39;&gt;&amp;amp;' \
    evil.html || echo missing)"
result 'hostile names: marks are named' \
    "$(grep -qF '[U+202E]gnp' evil.html || echo missing)"
result 'hostile names: and are not there' \
    "$(LC_ALL=C grep -c $'\xe2\x80\xae\|\xe2\x81\xa6\|\xe2\x80\x8d' \
        evil.html | grep -vx 0)"
for tag in svg style main section title p; do
    got=$(grep -o "<${tag}[ >]" evil.html | wc -l)
    want=$(grep -o "</$tag>" evil.html | wc -l)
    result "hostile names: <$tag>" "$([ "$got" -gt 0 ] &&
        [ "$got" = "$want" ] || echo "$got begin, $want end")"
done

# ---- What is no report ---------------------------------------------------
refused() # WHAT: bad.jsonl
{
    rm -f bad.html
    page bad
    result "$1" "$([ "$got" = 65 ] && [ "$(wc -l <err)" = 1 ] && [ ! -s out ] &&
        [ ! -e bad.html ] || echo "exit $got: $(cat err)")"
}
: >bad.jsonl
refused 'empty'
head -c 5000 right.jsonl >bad.jsonl
refused 'cut in a line'
sed '$d' right.jsonl >bad.jsonl
refused 'cut between lines'
sed 's/"report":2/"report":3/' right.jsonl >bad.jsonl
refused 'of another version'
{
    sed '$d' right.jsonl
    cat divide-twice.jsonl
} >bad.jsonl
refused 'of two engines, one of which has no end'
sed 's/\["pre-forward",0,/["pre-forward",9,/' right.jsonl >bad.jsonl
refused 'a unit that is none'
sed 's/"peak.optim":/"peak.other":/' right.jsonl >bad.jsonl
refused 'another figure'
sed '/"type":"figures"/p' right.jsonl >bad.jsonl
refused 'figures twice'
sed 's/"begin"/"beginning"/' right.jsonl >bad.jsonl
refused 'a point that is none'
sed 's/"units":\["/&\\u0007/' right.jsonl >bad.jsonl
refused 'a control character in a name'
timeout 20 "$cts" report right.jsonl --html no/such/page.html >out 2>err
got=$?
result 'no such folder' "$([ "$got" = 74 ] || echo "exit $got")"
result 'nothing is left behind' "$(find . -name '*.partial')"
finish 89

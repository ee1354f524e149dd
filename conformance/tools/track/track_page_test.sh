#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# track_page_test.sh - opens the page of a history in headless Chromium, clicks
# through it and looks at what is drawn: on a wide screen, on a phone, in the
# dark. A script is put into a copy of the page; what it finds it writes into
# the document, which Chromium prints.
#
# usage: track_page_test.sh FSDP-CTS [INCLUDE-FOLDER [PICTURES]]
# PICTURES: a folder for screenshots.
set -uo pipefail

cts=$(realpath "$1")
browse=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../cli" && pwd)/browser.sh
pictures=${3:+$(realpath "$3")}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
case=mlp.seed.natural.full-shard.k4.flat.layer.rank.s.sgd.steps40
failed=0

# shellcheck source=conformance/cli/browser.sh
. "$browse"

# ---- A history: 31 runs; a slower kernel at 22, a held gradient at 31 ----
for mutant in '' reduce-input-held; do
    "$cts" run --quiet --workload mlp,gpt --ranks 4 --partial-ok \
        ${mutant:+--mutant "$mutant"} --report "report$mutant.jsonl" \
        >/dev/null 2>&1
done
samples() # BASE RUN: nine of them, made up
{
    awk -v base="$1" -v run="$2" 'BEGIN {
        for (i = 0; i < 9; i++)
            printf "%s%.1f", i ? ", " : "",
                base * (1 + 0.02 * sin(run * 12.9898 + i * 78.233))
    }'
}
for i in $(seq 31); do
    base=52000
    [ "$i" -lt 22 ] || base=49000
    list=$(samples "$base" "$i")
    sorted=$(tr -d ' ' <<<"$list" | tr , '\n' | sort -n)
    cat >bench.json <<END
{"format": "fsdp-bench", "version": 1, "commit": "$(printf 'a%07x' "$i")",
 "date": "2026-10-$(printf '%02d' "$i")T10:00:00Z", "hardware": {"cpu": "X",
 "cores": 8, "memory_bytes": 17179869184, "gpu": null}, "results": [
 {"name": "step.gpt-small.full-shard.k4.impl", "unit": "tokens/s",
  "better": "higher", "median": $(sed -n 5p <<<"$sorted"),
  "p10": $(sed -n 1p <<<"$sorted"), "p90": $(sed -n 9p <<<"$sorted"),
  "samples": [$list]}]}
END
    report=report.jsonl
    [ "$i" -lt 31 ] || report=reportreduce-input-held.jsonl
    "$cts" track add --quiet --history h.db bench.json "$report" \
        --date "2026-10-$(printf '%02d' "$i")T10:00:00Z" || exit 1
done
"$cts" track report --history h.db page.html || exit 1

sed "s/CASE ref/$case ref/" <<'END' |
    var cases = all('details.case');
    var closed = cases.filter(function (c) { return !c.open; });
    say('cases', cases.length > 20, cases.length);
    say('changed cases are open', cases.some(function (c) {
        return c.open && c.hasAttribute('data-changed'); }), '');
    say('others are closed', closed.length > 5 && closed.every(function (c) {
        return !visible(c.querySelector('svg')); }), closed.length);

    closed[0].querySelector('summary').click();
    say('a click opens a case', closed[0].open &&
        visible(closed[0].querySelector('svg')), '');
    closed[0].querySelector('summary').click();
    say('another closes it', !closed[0].open, '');

    var words = document.getElementById('q');
    words.value = 'gpt-small IMPL';
    words.dispatchEvent(new Event('input'));
    say('words find a case', cases.filter(visible).length === 1,
        cases.filter(visible).length);
    say('and say how many', document.getElementById('shown').textContent ===
        '1 of ' + cases.length, document.getElementById('shown').textContent);
    words.value = '';
    words.dispatchEvent(new Event('input'));
    document.getElementById('changed').click();
    say('changed only', cases.filter(visible).length ===
        all('details.case[data-changed]').length, '');
    document.getElementById('changed').click();
    document.getElementById('open').click();
    say('open all', cases.every(function (c) { return c.open; }), '');

    all('svg').forEach(function (s, i) {
        var title = s.querySelector('title');
        var ids = (s.getAttribute('aria-labelledby') || '').split(' ');
        var texts = all('.axis text', s);
        if (!(s.getAttribute('role') === 'img' && title &&
                title.textContent.length > 8 && ids.length === 2 &&
                ids.every(function (id) {
                    return document.getElementById(id).textContent; }))) {
            say('a picture without words', false, i);
        }
        if (!(texts.length >= 4 && texts.every(function (t) {
                return /\S/.test(t.textContent); }))) {
            say('a picture without labels', false, i);
        }
        if (/NaN|inf/i.test(s.innerHTML.replace(/<title.*?<\/title>/g, ''))) {
            say('a picture of no numbers', false, i);
        }
        all('path.line,path.area,.bound path', s).forEach(function (p) {
            var b = p.getBBox();
            if (!(b.x >= 0 && b.x + b.width <= 400 && b.y >= -1 &&
                    b.y + b.height <= 210)) {
                say('a line outside its picture', false, i);
            }
        });
    });
    say('pictures', all('svg').length > cases.length, all('svg').length);

    var timed = cases.filter(function (c) {
        return /gpt-small/.test(c.getAttribute('data-name')); })[0];
    var change = all('.change', timed);
    say('one change point', change.length === 1, change.length);
    say('it is worse and says by how much',
        change[0].classList.contains('worse') &&
        /^-[567]\.\d %$/.test(change[0].querySelector('text').textContent),
        change[0].textContent);
    say('where it is', Math.abs(change[0].querySelector('path').getBBox().x -
        (56 + 332 * 21 / 30)) < 1,
        change[0].querySelector('path').getBBox().x);
    say('two levels', all('path.level', timed).length === 2, '');

    var held = document.querySelector(
        'details.case[data-name="CASE ref"]');
    var kinds = all('.area', held).length;
    say('memory by kind', kinds === 5, kinds);
    var bound = held.querySelector('.bound path').getBBox().y;
    var top = held.querySelector('.peak').getBBox();
    say('the peak is above the bound', top.y + top.height < bound - 2,
        top.y + top.height + ' ' + bound);
    say('and says which unit made it', /of unit layers\.\d: /.test(
        held.querySelector('.peak-text').textContent),
        held.querySelector('.peak-text').textContent);
    var good = cases.filter(function (c) {
        return c.querySelector('.bound') && !c.hasAttribute('data-changed');
    })[0];
    bound = good.querySelector('.bound path').getBBox().y;
    top = good.querySelector('.peak').getBBox();
    say('that of a good case is not', top.y + top.height >= bound - 0.2,
        top.y + top.height + ' ' + bound);

    document.getElementById('open').click();
    all('table.changes details').forEach(function (d) { d.open = true; });
    var link = all('table.changes a')[1];
    link.click();
    var target = document.getElementById(link.getAttribute('href').slice(1));
END
    scripted page.html "say('a link opens its case', target.open, '');"

least=22
one desktop 1400,1000 'rgb(251, 251, 250)'
one phone 390,800 'rgb(251, 251, 250)'
one dark 1400,1000 'rgb(20, 23, 26)' --blink-settings=preferredColorScheme=0

shots page.html
exit "$failed"

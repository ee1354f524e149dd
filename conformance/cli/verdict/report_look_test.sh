#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# report_look_test.sh - opens the page of a run that failed in headless
# Chromium, clicks through it and looks at what is drawn: on a wide screen, on
# a phone, in the dark. From the top to the element that is wrong there are two
# clicks, whichever of five mutants it was.
#
# usage: report_look_test.sh FSDP-CTS [INCLUDE-FOLDER [PICTURES]]
# PICTURES: a folder for screenshots.
set -uo pipefail

cts=$(realpath "$1")
browse=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/browser.sh
pictures=${3:+$(realpath "$3")}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
# shellcheck source=conformance/cli/browser.sh
. "$browse"

mutants='divide-twice gather-stale skip-last-unit optim-twice reduce-input-held'
for mutant in $mutants; do
    "$cts" run --engine ref --mutant "$mutant" --workload mlp --ranks 2 \
        --strategy full-shard --report one.jsonl --quiet >out 2>&1
    cat one.jsonl >>run.jsonl
done
"$cts" report run.jsonl --html page.html --quiet >out 2>&1

scripted page.html <<'END'
    var cases = all('details.case');
    say('all is closed', cases.every(function (c) { return !c.open; }), '');
    say('five verdicts', all('.verdict.worse').length === 5,
        all('.verdict').length);
    say('five staircases of nine', all('.stairs').length === 5 &&
        all('.stair').length === 45, all('.stair').length);

    all('.first').forEach(function (first, i) {
        var place = all('dd', first)[1].textContent;
        first.querySelector('a.go').click();
        var of = document.getElementById(
            first.querySelector('a.go').getAttribute('href').slice(1));
        of.open = of.open || location.hash === '#' + of.id;
        var told = all('.failure', of).filter(function (f) {
            return visible(f) && f.textContent.indexOf(place) >= 0;
        });
        say('mutant ' + i + ': one click from ' + place, told.length > 0, '');
        of.open = false;
    });

    var words = document.getElementById('q');
    document.dispatchEvent(new KeyboardEvent('keydown', {key: '/', bubbles: true}));
    say('/ goes to the words', document.activeElement === words,
        document.activeElement.localName);
    words.value = 'reduce.scale ref';
    words.dispatchEvent(new Event('input'));
    var shown = cases.filter(visible);
    say('words find what fails', shown.length > 0 &&
        shown.length < cases.length && shown.every(function (c) {
            return /reduce\.scale/.test(c.textContent); }), shown.length);
    words.value = '';
    words.dispatchEvent(new Event('input'));
    document.getElementById('changed').click();
    say('failures only', cases.filter(visible).length ===
        all('details.case[data-changed]').length, '');
    document.getElementById('changed').click();

    /* What is not on the screen has no size otherwise. */
    document.head.appendChild(document.createElement('style')).textContent =
        'details.case { content-visibility: visible }';
    document.getElementById('open').click();
    all('details.how').forEach(function (d) { d.open = true; });
    /* The kill matrix is as wide as it must be, and moves in its frame. */
    var wide = all('figure.wide svg');
    say('a kill matrix', wide.length === 1 && wide.every(function (s) {
        var frame = s.parentElement.getBoundingClientRect();
        return frame.width > 200 && frame.right <= innerWidth &&
            s.getBoundingClientRect().width >= 1100;
    }), wide.length);
    say('marks of all mutants', all('.kill title').length > 200 &&
        all('.kill title').length === all('dt[id^="k-"]').length,
        all('.kill title').length);
    var drawn = all('figure:not(.wide) svg');
    say('pictures', drawn.length > cases.length / 2, drawn.length);
    drawn.forEach(function (s, i) {
        var b = s.getBoundingClientRect();
        var title = s.querySelector('title');
        if (!(s.getAttribute('role') === 'img' && title &&
                title.textContent.length > 8)) {
            say('a picture without words', false, i);
        }
        if (!(b.width > 200 && b.height > 100 && b.right <= innerWidth)) {
            say('a picture that is cut', false, i + ': ' + [b.left, b.right,
                b.height, title.textContent, s.closest('details') && s.closest('details').open]);
        }
    });
    all('symbol').forEach(function (s) {
        if (/NaN|inf[^o]/i.test(s.innerHTML)) {
            say('a picture of no numbers', false, s.id);
        }
    });
    /* Letters of what is shown by <use> have the style of others. */
    var text = document.querySelector('symbol text');
    say('letters have their style', getComputedStyle(text).fontSize ===
        '10.5px', getComputedStyle(text).fontSize);
    document.getElementById('open').click();

    var link = document.querySelector('.first a[href^="#r-"]');
    link.click();
    var asked = document.getElementById(link.getAttribute('href').slice(1));
    say('a link leads to what is asked', visible(asked) &&
        asked.textContent.length > 60, asked.textContent);
END
# shellcheck disable=SC2034  # browser.sh's
least=19
one desktop 1400,1000 'rgb(251, 251, 250)'
one phone 390,800 'rgb(251, 251, 250)'
one dark 1400,1000 'rgb(20, 23, 26)' --blink-settings=preferredColorScheme=0
shots page.html
exit "$failed"

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page.js - finds cases by words of their names, or those that changed; "/"
 * goes to the words. Pages say all they have to say without it.
 */
(function () {
    'use strict';
    var words = document.getElementById('q');
    var changed = document.getElementById('changed');
    var open = document.getElementById('open');
    var shown = document.getElementById('shown');
    var cases = [].slice.call(document.querySelectorAll('details.case'));

    function pressed(button) {
        return button.getAttribute('aria-pressed') === 'true';
    }

    function show() {
        var wanted = words.value.toLowerCase().split(/\s+/);
        var n = 0;

        cases.forEach(function (c) {
            var name = c.getAttribute('data-name').toLowerCase();
            var ok = wanted.every(function (w) {
                return name.indexOf(w) >= 0;
            });

            ok = ok && (!pressed(changed) || c.hasAttribute('data-changed'));
            c.hidden = !ok;
            n += ok ? 1 : 0;
        });
        shown.textContent = n + ' of ' + cases.length;
    }

    /* A link to a case, or to something in it, opens it. */
    function follow() {
        var to = location.hash &&
            document.getElementById(location.hash.slice(1));

        for (var d = to; d; d = d.parentElement) {
            if (d.localName === 'details') {
                d.hidden = false;
                d.open = true;
            }
        }
        if (to) {
            to.scrollIntoView();
        }
    }

    words.addEventListener('input', show);
    changed.addEventListener('click', function () {
        changed.setAttribute('aria-pressed', !pressed(changed));
        show();
    });
    open.addEventListener('click', function () {
        var all = !pressed(open);

        open.setAttribute('aria-pressed', all);
        cases.forEach(function (c) {
            if (!c.hidden) {
                c.open = all;
            }
        });
    });
    addEventListener('hashchange', follow);
    addEventListener('keydown', function (e) {
        if (e.key === '/' && e.target.localName !== 'input') {
            e.preventDefault();
            words.focus();
        }
    });
    show();
    follow();
})();

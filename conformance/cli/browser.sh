# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Variables are those of whoever sources it.
# shellcheck disable=SC2034,SC2154
#
# browser.sh - opens a page in headless Chromium, for tests of pages. A script
# is put into a copy of the page (scripted); what it finds it writes into the
# document, which Chromium prints: lines of "ok   WHAT" and "FAIL WHAT".
#
# Needs $folder, a scratch folder; says that there is no Chromium, and ends with
# 77, where there is none. $failed becomes 1 where something is wrong.

failed=0
least=1 # lines that must be found
browser=''
for name in chromium chromium-browser google-chrome; do
    browser=${browser:-$(command -v "$name")}
done
if [ -z "$browser" ]; then
    echo 'there is no Chromium: nothing was looked at'
    exit 77
fi

# scripted PAGE [LATER]: test.html is that page with the script on stdin, which
# has say, all and visible; a moment later come LATER, and what holds of any page.
scripted()
{
    cat >script.head <<'END'
(function () {
    var found = [];
    function say(what, ok, seen) {
        found.push((ok ? 'ok   ' : 'FAIL ') + what + (ok ? '' : ': ' + seen));
    }
    function all(s, in_) {
        return [].slice.call((in_ || document).querySelectorAll(s));
    }
    function visible(e) {
        return e.checkVisibility();
    }
END
    {
        echo '    setTimeout(function () {'
        [ $# -eq 1 ] || echo "        $2"
        cat <<'END'
        say('nothing was fetched',
            performance.getEntriesByType('resource').length === 0, '');
        say('no part is wider than the screen',
            document.documentElement.scrollWidth <= innerWidth,
            document.documentElement.scrollWidth + ' ' + innerWidth);
        say('ground ' + getComputedStyle(document.body).backgroundColor, true);
        var out = document.createElement('pre');
        out.textContent = '\nfound\n' + found.join('\n') + '\n';
        document.body.replaceChildren(out);
    }, 200);
})();
END
    } >script.tail
    cat script.head - script.tail >script.js
    sed '/<\/body>/e echo "<script>"; cat script.js; echo "</script>"' "$1" \
        >test.html
}

look() # WIDTH,HEIGHT ARGUMENT...
{
    local size=$1
    shift
    HOME=$folder timeout 120 "$browser" --headless=new --no-sandbox \
        --disable-gpu --hide-scrollbars --no-first-run \
        --user-data-dir="$folder/profile" --window-size="$size" \
        --virtual-time-budget=3000 "$@" 2>browser.err
}

one() # NAME WIDTH,HEIGHT GROUND ARGUMENT...: test.html
{
    local name=$1 size=$2 ground=$3
    shift 3
    echo "-- $name"
    look "$size" --dump-dom "$@" "file://$folder/test.html" >dom
    sed -n '/^found$/,/^<\/pre>/p' dom | grep -E '^(ok|FAIL)' >found
    cat found
    if [ "$(grep -c '^ok' found)" -lt "$least" ] || grep -q '^FAIL' found; then
        echo "FAIL $name: $(wc -l <found) lines; $(tail -n 3 browser.err)"
        failed=1
    fi
    if ! grep -qF "$ground" found; then
        echo "FAIL $name: the ground is not $ground"
        failed=1
    fi
}

shots() # PAGE: into the folder $pictures, if there is one
{
    [ -n "$pictures" ] || return 0
    look 1280,1500 --screenshot="$pictures/desktop.png" "file://$folder/$1"
    look 500,1800 --screenshot="$pictures/phone.png" "file://$folder/$1"
    look 1280,1500 --screenshot="$pictures/dark.png" \
        --blink-settings=preferredColorScheme=0 "file://$folder/$1"
}

# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# common.sh - what the lints share: which files they look at, and how each
# proves that it can fail. It is sourced, not run.

# lint_files ROOT: the files under ROOT that belong to the project, one on a
# line, relative to ROOT: tracked ones and new ones that git does not ignore.
# Without git (an unpacked archive) it is everything but build trees.
lint_files()
{
    local root=$1 top file

    top=$(git -C "$root" rev-parse --show-toplevel 2>/dev/null) || top=
    if [ -n "$top" ] && [ "$top" -ef "$root" ]; then
        git -C "$root" ls-files -z --cached --others --exclude-standard
    else
        (cd "$root" && find . \( -name .git -o -path './build*' \
            -o -path ./records \) -prune -o -type f -printf '%P\0')
    fi | while IFS= read -r -d '' file; do
        # A file that was deleted but not committed is still listed.
        if [ -f "$root/$file" ] && [ ! -L "$root/$file" ]; then
            printf '%s\n' "$file"
        fi
    done | LC_ALL=C sort -u
}

# lint_main NAME ARGUMENT...: the command line of every lint. The script that
# calls it has defined lint_usage, lint_check (prints its findings) and
# lint_self_test (makes files in a folder and calls lint_expect).
lint_main()
{
    local name=$1 root findings
    shift

    root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
    case ${1-} in
    --help | -h)
        lint_usage
        return 0
        ;;
    --self-test)
        lint_scratch=$(mktemp -d)
        trap 'rm -rf "$lint_scratch"' EXIT
        lint_self_test "$lint_scratch"
        return
        ;;
    -*)
        lint_usage >&2
        return 64
        ;;
    ?*)
        root=$1
        ;;
    esac
    # An empty list would pass; more likely the folder is the wrong one.
    if [ ! -d "$root" ] || [ -z "$(lint_files "$root")" ]; then
        printf '%s: no files in %s\n' "$name" "$root" >&2
        return 64
    fi
    findings=$(lint_check "$root") || {
        printf '%s: the check itself failed\n' "$name" >&2
        return 1
    }
    if [ -n "$findings" ]; then
        printf '%s\n' "$findings"
        printf '%s: %s findings\n' "$name" "$(wc -l <<<"$findings")" >&2
        return 1
    fi
}

# lint_plant FOLDER PATH LINE...: a file for the self-test.
lint_plant()
{
    local file=$1/$2
    shift 2

    mkdir -p "$(dirname "$file")"
    printf '%s\n' "$@" >"$file"
}

# lint_expect NAME FOLDER EXPECTED: the findings in FOLDER, cut down to
# "file:line: rule", must be EXPECTED exactly: each planted fault is found, and
# the planted files without a fault raise none.
lint_expect()
{
    local name=$1 folder=$2 expected=$3 got

    got=$(lint_check "$folder") || return 1
    got=$(sed -E 's/^([^:]+:[0-9]+: [a-z-]+):.*/\1/' <<<"$got" |
        LC_ALL=C sort)
    expected=$(LC_ALL=C sort <<<"$expected")
    if [ "$got" != "$expected" ]; then
        printf '%s: the self-test failed (< expected, > found):\n' "$name"
        diff <(printf '%s\n' "$expected") <(printf '%s\n' "$got") || true
        return 1
    fi
    printf '%s: self-test: %s planted faults, all found\n' "$name" \
        "$(wc -l <<<"$expected")"
}

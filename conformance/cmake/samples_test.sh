#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# samples_test.sh - the samples of pipelines and the action are what GitHub and
# GitLab take, by the schemas that check-jsonschema brings; and it would notice.
# What their commands do, command.summary_test tries.
#
# usage: samples_test.sh CI-FOLDER
set -uo pipefail

command -v check-jsonschema >/dev/null || {
    echo 'skipped: there is no check-jsonschema (pip install check-jsonschema)'
    exit 77
}
cd "$1" || exit 1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0

# check SCHEMA FILE...
check()
{
    local schema=$1 transform=()
    shift
    [ "$schema" != gitlab-ci ] || transform=(--data-transform gitlab-ci)
    check-jsonschema --builtin-schema "vendor.$schema" "${transform[@]}" "$@" \
        >"$folder/said" 2>&1
}

# valid SCHEMA FILE WRONG: FILE is right; with the sed expression it is not.
valid()
{
    if ! check "$1" "$2"; then
        cat "$folder/said"
        failed=$((failed + 1))
    fi
    sed "$3" "$2" >"$folder/wrong.yml"
    if cmp -s "$2" "$folder/wrong.yml" || check "$1" "$folder/wrong.yml"; then
        echo "$2: '$3' makes it no worse"
        failed=$((failed + 1))
    fi
}

for file in samples/*github-actions*.yml; do
    valid github-workflows "$file" 's/runs-on:/runs:/'
done
for file in samples/*gitlab-ci*.yml; do
    valid gitlab-ci "$file" 's/^\( *\)image: .*/\1image: [1]/'
done
valid github-actions action/action.yml 's/using: composite/using: nothing/'
[ "$failed" -eq 0 ] && echo 'all samples are valid'

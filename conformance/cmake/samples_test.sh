#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# samples_test.sh - the samples of pipelines and the action are what GitHub and
# GitLab take, by the schemas that check-jsonschema brings, and the Job what
# Kubernetes takes, by those of kubernetes-validate; and it would notice. What
# the pipelines' commands do, command.summary_test tries.
#
# usage: samples_test.sh CI-FOLDER
set -uo pipefail

cd "$1" || exit 1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0
lacking=''

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

if command -v check-jsonschema >/dev/null; then
    for file in samples/*github-actions*.yml; do
        valid github-workflows "$file" 's/runs-on:/runs:/'
    done
    for file in samples/*gitlab-ci*.yml; do
        valid gitlab-ci "$file" 's/^\( *\)image: .*/\1image: [1]/'
    done
    valid github-actions action/action.yml 's/using: composite/using: nothing/'
else
    lacking='check-jsonschema'
fi

# MPI's operator has no schema there.
job=samples/kubernetes-job.yml
if command -v kubernetes-validate >/dev/null; then
    kubernetes-validate "$job" >"$folder/said" 2>&1 || {
        cat "$folder/said"
        failed=$((failed + 1))
    }
    sed 's/restartPolicy: Never/restartPolicy: 3/' "$job" >"$folder/wrong.yml"
    if kubernetes-validate "$folder/wrong.yml" >/dev/null 2>&1; then
        echo "$job: a wrong policy makes it no worse"
        failed=$((failed + 1))
    fi
else
    lacking="$lacking kubernetes-validate"
fi

for file in samples/*.sbatch; do
    bash -n "$file" || failed=$((failed + 1))
done

if [ -n "$lacking" ] && [ "$failed" -eq 0 ]; then
    echo "skipped: there is no $lacking (pip install $lacking)"
    exit 77
fi
[ "$failed" -eq 0 ] && echo 'all samples are valid'

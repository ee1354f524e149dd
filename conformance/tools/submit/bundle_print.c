/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bundle_print.c - what verify says of a bundle, for people and for programs.
 */
#include "tools/submit/bundle.h"

#include <jansson.h>
#include <stdio.h>

/* The first case that its claims call for and that has no record. */
static const char *first_missing(const struct judge_result *r)
{
    for (uint32_t i = 0; i < r->n_cases; i++) {
        if (r->cases[i].outcome == JUDGE_INCOMPLETE) {
            return r->cases[i].id;
        }
    }
    return "none";
}

static void print_json(const struct bundle *b, int code)
{
    const struct judge_result *r = &b->judged.r;
    json_t *o = json_pack(
        "{s:s, s:s, s:s, s:s, s:b, s:b, s:s, s:i, s:i, s:i, s:i, s:i, s:i}",
        "bundle", b->sha256, "engine", b->s.engine, "engine_version",
        b->s.engine_version, "verdict",
        b->s.has_records ? judge_verdict_name(r->verdict) : "INCOMPLETE",
        "records", b->s.has_records ? 1 : 0, "whole", b->s.whole ? 1 : 0,
        "commit", b->s.commit, "expected", (int)r->expected, "executed",
        (int)r->executed, "pass", (int)r->count[JUDGE_PASS], "fail",
        (int)(r->count[JUDGE_FAIL] + r->count[JUDGE_ERROR] +
              r->count[JUDGE_TIMEOUT]),
        "blocked", (int)r->count[JUDGE_BLOCKED], "exit", code);

    if (o) {
        (void)json_dumpf(o, stdout, JSON_INDENT(1));
        printf("\n");
        json_decref(o);
    }
}

void bundle_print(const struct bundle *b, const struct arguments *a, int code)
{
    const struct judge_result *r = &b->judged.r;

    if (a->json) {
        print_json(b, code);
        return;
    }
    if (b->s.has_records) {
        evaluate_print(a, &b->judged, 1);
    }
    if (!a->quiet) {
        char name[SUBMISSION_TEXT_BYTES];
        char release[SUBMISSION_TEXT_BYTES];

        snprintf(name, sizeof(name), "%s", b->s.about.name);
        snprintf(release, sizeof(release), "%s", b->s.about.release);
        printf("\nbundle   SHA-256 %s\n"
               "of       %s (%s)\n"
               "files    %u, all as in the manifest\n",
               b->sha256, bundle_plain(name), bundle_plain(release),
               b->files.n);
    }
    if (!b->s.has_records) {
        printf("%s no records: nothing can be judged again, and a report "
               "proves nothing\nINCOMPLETE\n",
               a->quiet ? b->s.engine : "report  ");
        return;
    }
    if (a->quiet) {
        return;
    }
    printf("report   says what was found now\n"
           "cases    %u of %u that its claims call for%s\n",
           r->executed, r->expected,
           b->s.whole ? "" : ", of a selection: no bundle of it is CONFORMANT");
    if (r->executed != r->expected) {
        printf("missing  %s\n", first_missing(r));
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_read_footer.c - reads the line that ends an engine's part of a report.
 */
#include "judge/judge_internal.h"
#include "judge/report/report_read_internal.h"

#include <string.h>

static bool take_manifest(struct report_reader *p, const json_t *v)
{
    struct judge_result *r = &p->part->result;

    r->foreign = json_is_true(json_object_get(v, "foreign"));
    return report_reader_u32(p, v, "cases", &r->manifest) &&
           report_reader_u32(p, v, "selected", &r->selected) &&
           report_reader_text(p, v, "sha256", r->manifest_sha256,
                              sizeof(r->manifest_sha256));
}

/* Reads for which requirements the check was not proved. Of all others the
 * result then says that it was, as often as is possible. */
static bool take_self_check(struct report_reader *p, const json_t *v)
{
    struct judge_result *r = &p->part->result;
    const json_t *unproved = json_object_get(v, "unproved");

    if (!json_is_boolean(json_object_get(v, "abandoned")) ||
        !json_is_array(unproved)) {
        return report_reader_refuse(p, "a footer without its self-check");
    }
    r->abandoned = json_is_true(json_object_get(v, "abandoned"));
    for (uint32_t q = 0; q < r->n_requirements; q++) {
        r->n_proofs[q] = 1;
    }
    for (size_t i = 0; i < json_array_size(unproved); i++) {
        const uint32_t q =
            report_reader_requirement(p, json_array_get(unproved, i));

        if (q == r->n_requirements) {
            return false;
        }
        r->n_proofs[q] = 0;
    }
    return true;
}

static bool take_drawn(struct report_reader *p, const json_t *v)
{
    struct judge_drawn *d = &p->part->result.drawn;

    if (!v) {
        return true;
    }
    d->wanted = true;
    d->incomplete = json_is_true(json_object_get(v, "incomplete"));
    return report_reader_u32(p, v, "generator", &d->generator) &&
           report_reader_u32(p, v, "seed", &d->seed) &&
           report_reader_u32(p, v, "played", &d->played) &&
           report_reader_u32(p, v, "failed", &d->failed) &&
           report_reader_text(p, v, "first", d->first, sizeof(d->first));
}

static bool take_stopped(struct report_reader *p, const json_t *v)
{
    struct judge_result *r = &p->part->result;

    return !v ||
           (report_reader_u32(p, v, "not_run", &r->not_run) &&
            report_reader_u32(p, v, "not_judged", &r->not_judged) &&
            report_reader_text(p, v, "why", r->stopped, sizeof(r->stopped)));
}

/* Whether all conclusions follow from the items. Outcomes that do not apply
 * have no items, and are counted all the same. */
static bool check_conclusion(struct report_reader *p, const json_t *line)
{
    const struct judge_result *r = &p->part->result;
    const json_t *totals = json_object_get(line, "totals");
    const char *verdict = json_string_value(json_object_get(line, "verdict"));

    for (uint32_t i = 0; i < JUDGE_N_OUTCOMES; i++) {
        uint32_t n = 0;

        if (!report_reader_u32(p, totals, judge_outcome_name(i), &n)) {
            return false;
        }
        if (n != r->count[i]) {
            return report_reader_refuse(p,
                                        "%u are said to be %s, of the items "
                                        "%u are",
                                        n, judge_outcome_name(i), r->count[i]);
        }
    }
    return (verdict && strcmp(verdict, judge_verdict_name(r->verdict)) == 0) ||
           report_reader_refuse(p,
                                "the verdict is %.20s, of these items it "
                                "is %s",
                                verdict ? verdict : "missing",
                                judge_verdict_name(r->verdict));
}

bool report_reader_footer(struct report_reader *p, const json_t *line)
{
    struct judge_result *r = &p->part->result;

    p->part->meta.ended = json_integer_value(json_object_get(line, "ended"));
    p->open = false;
    if (!take_manifest(p, json_object_get(line, "manifest")) ||
        !take_self_check(p, json_object_get(line, "self_check")) ||
        !take_drawn(p, json_object_get(line, "drawn")) ||
        !take_stopped(p, json_object_get(line, "stopped")) ||
        !report_reader_text(p, line, "reason", r->reason, sizeof(r->reason))) {
        return false;
    }
    judge_conclude(r);
    return check_conclusion(p, line);
}

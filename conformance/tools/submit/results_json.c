/* SPDX-License-Identifier: Apache-2.0 */
/* results_json.c - what results_table.c says, for programs. */
#include "tools/submit/results_table.h"

#include <jansson.h>

static json_t *requirements_of(const struct judge_result *r)
{
    json_t *all = json_object();

    for (uint32_t q = 0; q < r->n_requirements && all; q++) {
        const char *id = r->requirement[q]->id;
        const struct results_cell cell = results_cell(r, id);

        if (cell.pass + cell.fail + cell.blocked > 0 &&
            json_object_set_new(
                all, id,
                json_pack("{s:i, s:i, s:i, s:f}", "pass", (int)cell.pass,
                          "fail", (int)cell.fail, "blocked", (int)cell.blocked,
                          "ratio", cell.ratio)) != 0) {
            json_decref(all);
            return NULL;
        }
    }
    return all;
}

static json_t *failures_of(const struct explanations *x)
{
    json_t *all = json_array();

    for (uint32_t i = 0; i < x->n && all; i++) {
        if (json_array_append_new(
                all, json_pack("{s:s, s:s, s:s, s:s, s:i}", "requirement",
                               x->of[i].requirement, "cases", x->of[i].cases,
                               "whose", explanation_whose_name(x->of[i].whose),
                               "why", x->of[i].why, "n", (int)x->of[i].n)) !=
            0) {
            json_decref(all);
            return NULL;
        }
    }
    return all;
}

static json_t *entry_of(const struct results_entry *e)
{
    /* `o` steals what it is given; NULL makes it fail. */
    return json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:b, s:i, s:i, s:i, s:i, s:s, s:s, s:o, "
        "s:o}",
        "name", e->s->about.name, "column", e->s->about.column, "release",
        e->s->about.release, "engine", e->s->engine, "engine_version",
        e->s->engine_version, "whole", e->s->whole ? 1 : 0, "cases",
        (int)e->r->executed, "pass", (int)e->r->count[JUDGE_PASS], "fail",
        (int)(e->r->count[JUDGE_FAIL] + e->r->count[JUDGE_ERROR] +
              e->r->count[JUDGE_TIMEOUT]),
        "blocked", (int)e->r->count[JUDGE_BLOCKED], "verdict",
        judge_verdict_name(e->r->verdict), "reason", e->r->reason,
        "requirements", requirements_of(e->r), "failures", failures_of(e->x));
}

int results_json(const struct results_entry *entry, uint32_t n, FILE *out)
{
    json_t *all = json_array();
    int status = all ? FSDP_OK : FSDP_ERR_NOMEM;

    for (uint32_t i = 0; i < n && status == FSDP_OK; i++) {
        if (json_array_append_new(all, entry_of(&entry[i])) != 0) {
            status = FSDP_ERR_NOMEM;
        }
    }
    if (status == FSDP_OK && json_dumpf(all, out, JSON_INDENT(1)) != 0) {
        status = FSDP_ERR_IO;
    }
    json_decref(all);
    return status == FSDP_OK && fputc('\n', out) == EOF ? FSDP_ERR_IO : status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_read_figures.c - reads a line of a report about what was measured in a
 * case.
 */
#include "judge/report/figures.h"
#include "judge/report/report_read_internal.h"

#include <stdlib.h>
#include <string.h>

/* Turns figures that were read into the judge's, and takes over their lists. */
static void keep(struct figures *f, struct judge_figures *to)
{
    for (uint32_t i = 0; i < JUDGE_N_FIGURES; i++) {
        const uint64_t *value = figures_find(f, judge_figure_name(i));

        to->figure[i] = value ? *value : 0; /* all are there */
    }
    to->steps = (uint32_t)f->steps;
    to->bound = f->bound;
    to->step = (uint32_t)f->step;
    to->n_moments = f->n_moments;
    to->moment = f->moment;
    to->n_units = f->n_units;
    to->unit = f->unit;
    f->moment = NULL;
    f->unit = NULL;
}

bool report_reader_figures(struct report_reader *p, json_t *line)
{
    struct judge_result *r = &p->part->result;
    struct judge_case *c = r->n_cases > 0 ? &r->cases[r->n_cases - 1] : NULL;
    const char *id = json_string_value(json_object_get(line, "case"));
    struct figures f = {.n = 0};
    bool good;

    if (!c || !id || strcmp(c->id, id) != 0 || c->figures) {
        return report_reader_refuse(p, "figures that are not the first ones "
                                       "behind their case's line");
    }
    (void)json_object_del(line, "type");
    (void)json_object_del(line, "case");
    good = figures_read(&p->j, line, &f) == FSDP_OK &&
           figures_are_judged(&p->j, &f);
    if (good) {
        c->figures = calloc(1, sizeof(*c->figures));
        if (c->figures) {
            keep(&f, c->figures);
        } else {
            good = report_reader_refuse(p, "out of memory");
        }
    }
    figures_release(&f);
    return good;
}

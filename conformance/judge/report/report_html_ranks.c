/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_html_ranks.c - memory over a step, of every rank. Most ranks have the
 * same picture as another one, so each picture is drawn once, with the names of
 * its ranks. Rank 0's is the picture of the case itself.
 */
#include "judge/judge_internal.h"
#include "judge/report/report_html_records.h"

#include <stdlib.h>

enum {
    DRAWN_MOST = 8,
    NAMES_BYTES = 120
};

struct ranks {
    struct html *h;
    uint32_t n;
    struct judge_figures **of; /* [n]; NULL: no timeline */
    uint32_t *same;            /* [n]: the first rank that has it */
};

static void release(struct ranks *s)
{
    for (uint32_t k = 0; s->of && k < s->n; k++) {
        judge_figures_release(s->of[k]);
    }
    free(s->of);
    free(s->same);
}

static void find_same(struct ranks *s, uint32_t k)
{
    uint32_t first = 0;

    while (first < k && (!s->of[first] || s->same[first] != first ||
                         !html_same_picture(s->of[first], s->of[k]))) {
        first++;
    }
    s->same[k] = first;
}

static bool load_ranks(struct ranks *s, const struct html_view *v)
{
    s->of = calloc((size_t)s->n + 1, sizeof(struct judge_figures *));
    s->same = calloc((size_t)s->n + 1, sizeof(*s->same));
    for (uint32_t k = 0; s->of && s->same && k < s->n; k++) {
        const struct record_rank *r = &v->record->rank[k];

        if (!r->present || r->memory.n_moments == 0) {
            continue;
        }
        s->of[k] = calloc(1, sizeof(*s->of[k]));
        if (!s->of[k] || judge_timeline(&v->expect, r, s->of[k]) != FSDP_OK) {
            return false;
        }
        find_same(s, k);
    }
    return s->of && s->same;
}

/* "rank 2", "ranks 1, 3": the ranks that share the picture of rank k. */
static uint32_t name_ranks(const struct ranks *s, uint32_t k,
                           char out[NAMES_BYTES])
{
    uint32_t n = 0;
    size_t used;

    for (uint32_t i = k; i < s->n; i++) {
        n += s->of[i] && s->same[i] == k ? 1 : 0;
    }
    used = (size_t)snprintf(out, NAMES_BYTES, n > 1 ? "ranks" : "rank");
    for (uint32_t i = k; i < s->n; i++) {
        if (!s->of[i] || s->same[i] != k) {
            continue;
        }
        if (used > NAMES_BYTES - 16) {
            snprintf(out + used, NAMES_BYTES - used, " ...");
            break;
        }
        used += (size_t)snprintf(out + used, NAMES_BYTES - used, "%s %u",
                                 i > k ? "," : "", i);
    }
    return n;
}

static void draw_rank(const struct ranks *s, uint32_t k)
{
    const struct judge_figures *f = s->of[k];
    char whose[NAMES_BYTES];
    struct memory_plot m = {.f = s->h->f,
                            .moment = f->moment,
                            .n = f->n_moments,
                            .unit = (const char(*)[64])f->unit,
                            .n_units = f->n_units,
                            .step = f->step,
                            .whose = whose,
                            .has_bound = true,
                            .bound = f->bound};

    (void)name_ranks(s, k, whose);
    memory_plot(&m, ++s->h->n_ids);
}

void html_ranks(struct html *h, const struct html_view *v)
{
    struct ranks s = {.h = h, .n = v->record->n_ranks};
    char whose[NAMES_BYTES];
    uint32_t drawn = 0;

    if (load_ranks(&s, v)) {
        for (uint32_t k = 1; k < s.n; k++) {
            if (s.of[k] && s.same[k] == k && drawn++ < DRAWN_MOST) {
                draw_rank(&s, k);
            }
        }
        if (s.n > 1 && s.of[0] && name_ranks(&s, 0, whose) > 1) {
            fprintf(h->f,
                    "<p class=\"peak-text\">In this step %s hold the same, "
                    "to the byte.</p>\n",
                    whose);
        }
        if (drawn > DRAWN_MOST) {
            fprintf(h->f,
                    "<p class=\"peak-text\">Of %u other timelines the "
                    "first %d are drawn.</p>\n",
                    drawn, DRAWN_MOST);
        }
    }
    release(&s);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_html_pictures.c - memory over a step. Half of all cases have the same
 * picture as another one, because a fold or a seed changes no byte. Each
 * picture is drawn once and shown wherever it belongs.
 */
#include "judge/draw/page_plot.h"
#include "judge/report/report_html_internal.h"

#include <stdlib.h>
#include <string.h>

static const struct judge_figures *figures_of(const struct html *h,
                                              const struct html_picture *p)
{
    return h->part[p->part].result->cases[p->c].figures;
}

bool html_same_picture(const struct judge_figures *a,
                       const struct judge_figures *b)
{
    bool same = a->n_moments == b->n_moments && a->n_units == b->n_units &&
                a->bound == b->bound && a->step == b->step;

    for (uint32_t i = 0; i < a->n_moments && same; i++) {
        const struct judge_moment *x = &a->moment[i];
        const struct judge_moment *y = &b->moment[i];

        same = x->point == y->point && x->unit == y->unit &&
               memcmp(x->live, y->live, sizeof(x->live)) == 0;
    }
    for (uint32_t i = 0; i < a->n_units && same; i++) {
        same = strcmp(a->unit[i], b->unit[i]) == 0;
    }
    return same;
}

static uint32_t first_like(const struct html *h, uint32_t i)
{
    uint32_t k = 0;

    while (k < i && !(h->picture[k].same == k &&
                      html_same_picture(figures_of(h, &h->picture[k]),
                                        figures_of(h, &h->picture[i])))) {
        k++;
    }
    return k;
}

int html_find_pictures(struct html *h)
{
    size_t most = 1;

    for (uint32_t p = 0; p < h->n; p++) {
        most += h->part[p].result->n_cases;
    }
    h->picture = calloc(most, sizeof(*h->picture));
    for (uint32_t p = 0; p < h->n && h->picture; p++) {
        const struct judge_result *r = h->part[p].result;

        for (uint32_t c = 0; c < r->n_cases; c++) {
            const struct judge_figures *f = r->cases[c].figures;

            if (f && f->n_moments > 0) {
                h->picture[h->n_pictures] =
                    (struct html_picture){.part = p, .c = c};
                h->picture[h->n_pictures].same = first_like(h, h->n_pictures);
                h->n_pictures++;
            }
        }
    }
    return h->picture ? FSDP_OK : FSDP_ERR_NOMEM;
}

static struct memory_plot plot_of(const struct html *h,
                                  const struct html_picture *p)
{
    const struct judge_figures *f = figures_of(h, p);

    return (struct memory_plot){.f = h->f,
                                .moment = f->moment,
                                .n = f->n_moments,
                                .unit = (const char(*)[64])f->unit,
                                .n_units = f->n_units,
                                .step = f->step,
                                .has_bound = true,
                                .bound = f->bound};
}

void html_define_pictures(struct html *h)
{
    fputs("<svg class=\"store\" aria-hidden=\"true\" width=\"0\" "
          "height=\"0\">\n",
          h->f);
    html_define_bits(h);
    for (uint32_t i = 0; i < h->n_pictures; i++) {
        if (h->picture[i].same == i) {
            const struct memory_plot m = plot_of(h, &h->picture[i]);

            fprintf(h->f, "<symbol id=\"m%u\" viewBox=\"0 0 %d %d\">", i,
                    PLOT_WIDTH, PLOT_HEIGHT);
            memory_plot_draw(&m);
            fputs("</symbol>\n", h->f);
        }
    }
    fputs("</svg>\n", h->f);
}

void html_show_picture(struct html *h, uint32_t part, uint32_t c)
{
    char title[MEMORY_PLOT_TITLE_BYTES];
    char words[MEMORY_PLOT_WORDS_BYTES];
    struct memory_plot m;
    uint32_t i = 0;

    while (i < h->n_pictures &&
           (h->picture[i].part != part || h->picture[i].c != c)) {
        i++;
    }
    if (i == h->n_pictures) {
        return;
    }
    m = plot_of(h, &h->picture[i]);
    memory_plot_words(&m, title, words);
    plot_open(h->f, ++h->n_ids, title, words);
    fprintf(h->f, "<use href=\"#m%u\"/>", h->picture[i].same);
    plot_close(h->f);
    memory_plot_legend(&m);
    fputs("</figure>\n", h->f);
}

void html_draw_memory(struct html *h, uint32_t part, uint32_t c)
{
    const struct html_picture p = {.part = part, .c = c};
    const struct judge_figures *f = figures_of(h, &p);

    if (f && f->n_moments > 0) {
        const struct memory_plot m = plot_of(h, &p);

        memory_plot(&m, ++h->n_ids);
    }
}

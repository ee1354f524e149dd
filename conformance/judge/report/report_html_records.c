/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_html_records.c - draws what a report lacks and records have: the
 * pictures of a case that failed, or of every case where there are few.
 */
#include "judge/report/report_html_records.h"
#include "judge/draw/page_text.h"
#include "judge/judge_internal.h"
#include "judge/report/picture.h"

#include <stdlib.h>

enum {
    CASES_FEW = 12,  /* so many are all drawn */
    CASES_MOST = 16, /* so many of those that failed are */
};

/* Draws a step on a time line; nothing if the record has none, or it cannot be
 * drawn. */
static void step(struct html *h, const struct html_view *v)
{
    struct fsdp_error error = {0};
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    int status = FSDP_ERR_NOMEM;

    if (f) {
        status = picture_step_inside(f, &v->expect, v->record, &error);
        if (fclose(f) != 0) {
            status = FSDP_ERR_NOMEM;
        }
    }
    if (status == FSDP_OK) {
        fputs("<figure class=\"wide\"><figcaption>Windows and "
              "collectives of a step</figcaption>\n",
              h->f);
        (void)fwrite(text, 1, n, h->f);
        fputs("</figure>\n", h->f);
    }
    free(text);
}

static void draw_record(struct html *h, const struct html_view *v)
{
    html_curve(h, v);
    html_collectives(h, v);
    html_peaks(h, v);
    html_ranks(h, v);
    html_map(h, v);
    step(h, v);
}

/* Finds the unsharded run; a case that has none is drawn without it. */
static void find_baseline(const struct judge_input *in, struct html_view *v)
{
    struct fsdp_error error = {0};
    char key[CASE_ID_BYTES];

    case_baseline_key(&v->c->c, key);
    v->expect.baseline = in->baseline(in->record_context, key, &error);
}

int html_look(struct html *h, uint32_t part, uint32_t c,
              void (*draws)(struct html *h, const struct html_view *v),
              struct fsdp_error *error)
{
    const struct judge_input *in = &h->source[part];
    struct html_view v = {
        .part = part, .c = &h->part[part].result->cases[c], .index = c};
    struct judge_model model = {NULL, NULL, NULL, NULL};
    int status;

    v.record = in->record(in->record_context, v.c->id, error);
    if (!v.record) {
        return FSDP_ERR_IO;
    }
    FSDP_TRY(in->describe(in->model_context, &v.c->c, &model, error));
    status = expect_make_idle(&v.c->c, model.model, model.units, model.idle,
                              &v.expect);
    if (status == FSDP_OK) {
        find_baseline(in, &v);
        draws(h, &v);
    }
    expect_release(&v.expect);
    in->undescribe(in->model_context, &model);
    if (in->next) {
        in->next(in->record_context);
    }
    return status;
}

void html_show_records(struct html *h, uint32_t part, uint32_t c)
{
    const struct judge_result *r = h->part[part].result;
    struct fsdp_error error = {0};
    const bool failed = html_count_case(r, c).failures > 0;

    if (!h->source || (!failed && r->n_cases > CASES_FEW)) {
        return;
    }
    if (h->n_drawn++ >= CASES_MOST) {
        fputs("<p class=\"dim\">The page draws the records of "
              "the first cases that failed; for those of this one, "
              "make a page of it alone.</p>\n",
              h->f);
        return;
    }
    if (html_look(h, part, c, draw_record, &error) == FSDP_ERR_IO) {
        fputs("<p class=\"dim\">Its record is not there", h->f);
        fputs(error.message[0] != '\0' ? ": " : ".", h->f);
        page_escape(h->f, error.message);
        fputs("</p>\n", h->f);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * picture_frame.c - the frame of a drawing. It has a background, so that it can
 * be read on any page, and is dark for readers who prefer that.
 */
#include "judge/report/picture_frame.h"
#include "judge/oracle/expect.h"
#include "judge/report/markup.h"

#include <string.h>

int picture_make(FILE *f, const struct expect *e, const struct record *r,
                 struct picture *out, struct fsdp_error *error)
{
    const struct record_memory *m = r->n_ranks > 0 ? &r->rank[0].memory : NULL;

    if (!m || m->n_moments == 0) {
        error->status = FSDP_ERR_INVALID;
        snprintf(error->message, sizeof(error->message),
                 "the record of rank 0 has no timeline to draw");
        return FSDP_ERR_INVALID;
    }
    for (uint32_t i = 0; i < m->n_moments; i++) {
        if (m->moment[i].module >= e->model->n_modules) {
            error->status = FSDP_ERR_INVALID;
            snprintf(error->message, sizeof(error->message),
                     "the timeline of rank 0 has a module %u, and the "
                     "model has %u",
                     m->moment[i].module, e->model->n_modules);
            return FSDP_ERR_INVALID;
        }
    }
    *out = (struct picture){.f = f,
                            .e = e,
                            .r = r,
                            .moment = m->moment,
                            .n = m->n_moments,
                            .column = (double)(PICTURE_RIGHT - PICTURE_LEFT) /
                                      m->n_moments};
    return FSDP_OK;
}

static void escape(FILE *f, const char *text)
{
    for (; *text != '\0'; text++) {
        markup_put(f, *text);
    }
}

void picture_open(const struct picture *p, const char *title, uint32_t height)
{
    if (p->inside) {
        fprintf(p->f,
                "<svg class=\"step\" viewBox=\"0 50 %d %u\" "
                "role=\"img\" aria-label=\"",
                PICTURE_WIDTH, height - 50);
        escape(p->f, title);
        fputs("\">\n", p->f);
        return;
    }
    fprintf(p->f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %u\" "
            "role=\"img\" aria-label=\"",
            PICTURE_WIDTH, height);
    escape(p->f, title);
    fprintf(
        p->f,
        "\">\n<style>\n"
        "text { font: 13px sans-serif; fill: #1f2328; }\n"
        ".title { font-size: 17px; font-weight: bold; }\n"
        ".small { font-size: 12px; }\n"
        ".muted { fill: #59636e; }\n"
        ".middle { text-anchor: middle; }\n"
        ".end { text-anchor: end; }\n"
        ".page { fill: #ffffff; }\n"
        ".module { fill: #eaeef2; stroke: #afb8c1; }\n"
        ".window, .full { fill: #b6e3ff; }\n"
        ".gather { fill: #0969da; }\n"
        ".reduce { fill: #bc4c00; }\n"
        ".shard { fill: #8c959f; }\n"
        ".line { stroke: #afb8c1; fill: none; }\n"
        ".meets { stroke: #59636e; stroke-dasharray: 2 3; }\n"
        ".bound { stroke: #1a7f37; stroke-width: 2; }\n"
        ".whole { stroke: #cf222e; stroke-width: 2; stroke-dasharray: 6 4; }\n"
        "text.bound { fill: #1a7f37; stroke: none; }\n"
        "text.whole { fill: #cf222e; stroke: none; }\n"
        "@media (prefers-color-scheme: dark) {\n"
        "text { fill: #e6edf3; }\n"
        ".muted { fill: #9198a1; }\n"
        ".page { fill: #0d1117; }\n"
        ".module { fill: #21262d; stroke: #57606a; }\n"
        ".window, .full { fill: #1f4b7a; }\n"
        ".gather { fill: #58a6ff; }\n"
        ".reduce { fill: #f0883e; }\n"
        ".shard { fill: #6e7681; }\n"
        ".line { stroke: #57606a; }\n"
        ".meets { stroke: #9198a1; }\n"
        ".bound { stroke: #3fb950; }\n"
        ".whole { stroke: #f85149; }\n"
        "text.bound { fill: #3fb950; }\n"
        "text.whole { fill: #f85149; }\n"
        "}\n</style>\n"
        "<rect class=\"page\" width=\"%d\" height=\"%u\" rx=\"6\"/>\n",
        PICTURE_WIDTH, height);
    picture_text(p, "title", 12, 26, title);
    picture_text(p, "small muted", 12, 45, p->r->id);
}

void picture_close(const struct picture *p)
{
    fprintf(p->f, "</svg>\n");
}

double picture_x(const struct picture *p, double i)
{
    return PICTURE_LEFT + p->column * i;
}

void picture_box(const struct picture *p, const char *class, double from,
                 double columns, double y, double height)
{
    fprintf(p->f,
            "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
            "height=\"%.1f\"/>\n",
            class, picture_x(p, from), y, columns * p->column, height);
}

void picture_text(const struct picture *p, const char *class, double x,
                  double y, const char *text)
{
    fprintf(p->f, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">", class, x, y);
    escape(p->f, text);
    fprintf(p->f, "</text>\n");
}

/* Where there is room for it: a letter is about 7 wide. */
static void put_if_it_fits(const struct picture *p, double from, double columns,
                           double y, const char *text)
{
    if (7.0 * (double)strlen(text) <= columns * p->column) {
        picture_text(p, "small middle", picture_x(p, from + columns / 2), y,
                     text);
    }
}

/* 0: between passes; then forward, backward, and what the optimizer does. */
static uint32_t pass_of(uint32_t point)
{
    switch (point) {
    case FSDP_PRE_FORWARD:
    case FSDP_POST_FORWARD:
        return 1;
    case FSDP_PRE_BACKWARD:
    case FSDP_POST_BACKWARD:
    case FSDP_PRE_RECOMPUTE:
    case FSDP_POST_RECOMPUTE:
        return 2;
    case RECORD_POINT_STEP:
    case RECORD_POINT_ZERO_GRAD:
        return 3;
    default:
        return 0;
    }
}

static void put_passes(const struct picture *p, double y)
{
    static const char *const name[] = {"", "forward", "backward", "step"};

    for (uint32_t i = 0, end = 0; i < p->n; i = end) {
        const uint32_t pass = pass_of(p->moment[i].point);

        for (end = i + 1; end < p->n; end++) {
            if (pass_of(p->moment[end].point) != pass) {
                break;
            }
        }
        if (pass != 0) {
            fprintf(p->f, "<path class=\"line\" d=\"M%.1f %.1fv-5H%.1fv5\"/>\n",
                    picture_x(p, i) + 2, y + 8, picture_x(p, end) - 2);
            put_if_it_fits(p, i, end - i, y - 2, name[pass]);
        }
    }
}

/* A module whose two points follow each other computes between them. */
void picture_modules(const struct picture *p, double y)
{
    put_passes(p, y);
    picture_text(p, "muted end", PICTURE_LEFT - 8, y + 29, "compute");
    for (uint32_t i = 0; i + 1 < p->n; i++) {
        const struct record_moment *pre = &p->moment[i];
        const struct record_moment *post = &p->moment[i + 1];

        if (expect_is_pre(pre->point) && post->point == pre->point + 1 &&
            post->module == pre->module) {
            picture_box(p, "module", i, 2, y + 14, 22);
            put_if_it_fits(p, i, 2, y + 29,
                           p->e->model->module_name[pre->module]);
        }
    }
}

void picture_legend(const struct picture *p, double y,
                    const char *const *entries)
{
    double x = PICTURE_LEFT;

    for (; entries[0]; entries += 2) {
        fprintf(p->f,
                "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"14\" "
                "height=\"14\"/>\n",
                entries[0], x, y - 12);
        picture_text(p, "small", x + 20, y, entries[1]);
        x += 40.0 + 6.6 * (double)strlen(entries[1]);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * picture_step.c - a step on a time line: a row for each unit of a rank, with
 * its windows and its collectives. Position is order; no clock is asked.
 */
#include "judge/oracle/expect_walk.h"
#include "judge/report/picture_frame.h"

#include <stdlib.h>
#include <string.h>

enum {
    RANKS = 2, /* others do the same */
    ROW = 30,
    BAR = 20,
    TOP = 116,
};

static double row_y(const struct picture *p, uint32_t rank, uint32_t unit)
{
    return TOP + 24 + (double)rank * (p->e->units->n_units * ROW + 34) +
           (double)unit * ROW;
}

/* The windows of one pass, whose points are the columns [begin, end). */
static int put_windows_of_pass(const struct picture *p, uint32_t rank,
                               uint32_t begin, uint32_t end)
{
    const uint32_t n = end - begin;
    uint32_t *point = calloc(n + 1, sizeof(*point));
    uint32_t *module = calloc(n + 1, sizeof(*module));
    uint32_t *opened = calloc(p->e->units->n_units + 1, sizeof(*opened));
    struct expect_stop *stop = NULL;
    uint32_t n_stops = 0;
    struct fsdp_sequence s = {
        .size = sizeof(s), .n = n, .point = point, .module = module};
    int status = FSDP_ERR_NOMEM;

    if (point && module && opened) {
        for (uint32_t i = 0; i < n; i++) {
            point[i] = p->moment[begin + i].point;
            module[i] = p->moment[begin + i].module;
        }
        status = expect_windows(p->e, &s, &stop, &n_stops);
        for (uint32_t i = 0; i < n_stops && status == FSDP_OK; i++) {
            const uint32_t u = stop[i].unit;
            const uint32_t at = begin + stop[i].point;

            if ((stop[i].flags & EXPECT_OPENS) != 0) {
                opened[u] = at;
            }
            if ((stop[i].flags & EXPECT_CLOSES) != 0) {
                picture_box(p, "window", opened[u],
                            (double)(at - opened[u]) + 0.7, row_y(p, rank, u),
                            BAR);
            }
        }
    }
    free(stop);
    free(opened);
    free(module);
    free(point);
    return status;
}

static int put_windows(const struct picture *p, uint32_t rank)
{
    uint32_t begin = 0;

    for (uint32_t i = 0; i <= p->n; i++) {
        bool point = i < p->n && p->moment[i].point >= FSDP_PRE_FORWARD &&
                     p->moment[i].point <= FSDP_POST_RECOMPUTE;

        if (!point && i > begin) {
            FSDP_TRY(put_windows_of_pass(p, rank, begin, i));
        }
        begin = point ? begin : i + 1;
    }
    return FSDP_OK;
}

static const char *class_of(uint32_t kind)
{
    return kind == FSDP_ALL_GATHER ? "gather" : "reduce";
}

static void put_flights(const struct picture *p, uint32_t rank)
{
    const struct record_flights *flights = &p->r->rank[rank].flights;

    for (uint32_t i = 0; i < flights->n; i++) {
        const struct record_flight *x = &flights->flight[i];

        if (x->issued < p->n && x->unit < p->e->units->n_units) {
            picture_box(p, class_of(x->kind), x->issued + 0.08, 0.6,
                        row_y(p, rank, x->unit), BAR);
        }
    }
}

/* Draws a collective, in which all ranks take part. */
static void put_meetings(const struct picture *p, uint32_t ranks)
{
    const struct record_flights *flights = &p->r->rank[0].flights;

    for (uint32_t i = 0; i < flights->n && ranks > 1; i++) {
        const struct record_flight *x = &flights->flight[i];

        if (x->issued < p->n && x->unit < p->e->units->n_units) {
            fprintf(p->f, "<path class=\"meets\" d=\"M%.1f %.1fV%.1f\"/>\n",
                    picture_x(p, x->issued + 0.38), row_y(p, 0, x->unit) + BAR,
                    row_y(p, ranks - 1, x->unit));
        }
    }
}

static int put_rank(const struct picture *p, uint32_t rank)
{
    char text[64];

    snprintf(text, sizeof(text), "rank %u", rank);
    picture_text(p, "", 12, row_y(p, rank, 0) - 10, text);
    for (uint32_t u = 0; u < p->e->units->n_units; u++) {
        snprintf(text, sizeof(text), "unit %u", u);
        picture_text(p, "muted end", PICTURE_LEFT - 8, row_y(p, rank, u) + 15,
                     text);
        fprintf(p->f, "<path class=\"line\" d=\"M%d %.1fH%d\"/>\n",
                PICTURE_LEFT, row_y(p, rank, u) + BAR, PICTURE_RIGHT);
    }
    FSDP_TRY(put_windows(p, rank));
    put_flights(p, rank);
    return FSDP_OK;
}

static int draw_step(FILE *f, const struct expect *e, const struct record *r,
                     bool inside, struct fsdp_error *error)
{
    const char *const legend[] = {"gather",
                                  "all-gather: the unit becomes whole",
                                  "window",
                                  "window: it is whole",
                                  "reduce",
                                  e->replicas > 1
                                      ? "reduction of its gradients"
                                      : "reduce-scatter of its gradients",
                                  NULL};
    const uint32_t ranks = r->n_ranks < RANKS ? r->n_ranks : RANKS;
    char title[128];
    struct picture p;
    double bottom;
    int status;

    FSDP_TRY(picture_make(f, e, r, &p, error));
    p.inside = inside;
    bottom = row_y(&p, ranks, 0);
    snprintf(title, sizeof(title), "One step of %u units on %u ranks%s",
             e->units->n_units, r->n_ranks,
             r->n_ranks > RANKS ? ", of which two are shown" : "");
    picture_open(&p, title, (uint32_t)bottom + 20);
    picture_modules(&p, 74);
    put_meetings(&p, ranks);
    status = FSDP_OK;
    for (uint32_t k = 0; k < ranks && status == FSDP_OK; k++) {
        status = put_rank(&p, k);
    }
    picture_legend(&p, bottom, legend);
    picture_close(&p);
    if (status != FSDP_OK) {
        error->status = status;
        snprintf(error->message, sizeof(error->message),
                 "a window of rank 0 never closes, as in a pass that "
                 "was cancelled: it cannot be drawn");
    }
    return status;
}

int picture_step(FILE *f, const struct expect *e, const struct record *r,
                 struct fsdp_error *error)
{
    return draw_step(f, e, r, false, error);
}

int picture_step_inside(FILE *f, const struct expect *e, const struct record *r,
                        struct fsdp_error *error)
{
    return draw_step(f, e, r, true, error);
}

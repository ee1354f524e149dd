/* SPDX-License-Identifier: Apache-2.0 */
/*
 * picture_memory.c - the weights that rank 0 holds during a step: its shards,
 * and upon them the units that are whole. They stay below M/K + the largest
 * unit; without sharding they are M.
 */
#include "judge/report/picture_frame.h"

#include <inttypes.h>
#include <string.h>

enum {
    TOP = 100,
    BOTTOM = 330,
    HEIGHT = 436,
    LETTERS = 20, /* what a line of text needs */
};

struct scale {
    uint64_t most;
};

static double y_of(const struct scale *s, uint64_t weights)
{
    return BOTTOM - (double)(BOTTOM - TOP) * (double)weights / (double)s->most;
}

static uint64_t shards_at(const struct record_moment *m)
{
    return m->live[FSDP_PARAM_SHARD] / sizeof(float);
}

static uint64_t weights_at(const struct record_moment *m)
{
    return shards_at(m) + m->live[FSDP_PARAM_FULL] / sizeof(float);
}

/* Draws columns [begin, end), in which the same units are held. */
static void put_held(const struct picture *p, const struct scale *s,
                     uint32_t begin, uint32_t end)
{
    const struct record_moment *m = &p->moment[begin];
    const double shards = y_of(s, shards_at(m));
    const double all = y_of(s, weights_at(m));
    const double columns = end - begin;
    char text[32];

    picture_box(p, "shard", begin, columns, shards, BOTTOM - shards);
    picture_box(p, "full", begin, columns, all, shards - all);
    snprintf(text, sizeof(text), "%" PRIu64, weights_at(m));
    if (7.0 * (double)strlen(text) <= columns * p->column) {
        const bool above = shards > all && shards - all < LETTERS;

        picture_text(p, "small middle", picture_x(p, begin + columns / 2),
                     above ? all - 4 : all + 15, text);
    }
}

static void put_columns(const struct picture *p, const struct scale *s)
{
    for (uint32_t i = 0, end = 0; i < p->n; i = end) {
        for (end = i + 1; end < p->n; end++) {
            if (weights_at(&p->moment[end]) != weights_at(&p->moment[i]) ||
                shards_at(&p->moment[end]) != shards_at(&p->moment[i])) {
                break;
            }
        }
        put_held(p, s, i, end);
    }
}

static void put_level(const struct picture *p, const struct scale *s,
                      const char *class, uint64_t weights, double text_y,
                      const char *text)
{
    const double y = y_of(s, weights);

    fprintf(p->f, "<path class=\"%s\" d=\"M%d %.1fH%d\"/>\n", class,
            PICTURE_LEFT, y, PICTURE_RIGHT);
    picture_text(p, class, PICTURE_LEFT + 6, text_y - 6, text);
}

static uint64_t bound_of(const struct expect *e)
{
    return e->peak_parameters / sizeof(float);
}

/* The bound is the formula where its premises hold: no unit's window lies
 * within another's, and nothing runs ahead. */
static void put_levels(const struct picture *p, const struct scale *s)
{
    const struct expect *e = p->e;
    const double bound_y = y_of(s, bound_of(e));
    const double whole_y = y_of(s, e->total);
    const double upper = bound_y < whole_y ? bound_y : whole_y;
    /* The texts of lines that are close stand one above the other, over
     * both. */
    const bool close =
        bound_y - whole_y < LETTERS && whole_y - bound_y < LETTERS;
    char text[128];

    snprintf(text, sizeof(text),
             "without sharding: the whole model, M = %" PRIu64, e->total);
    put_level(p, s, "whole", e->total, close ? upper - LETTERS : whole_y, text);
    if (bound_of(e) == e->resting + e->largest) {
        snprintf(text, sizeof(text),
                 "the bound: M/K + largest unit = %" PRIu64 " + %" PRIu64
                 " = %" PRIu64,
                 e->resting, e->largest, bound_of(e));
    } else {
        snprintf(text, sizeof(text), "the bound of the oracle: %" PRIu64,
                 bound_of(e));
    }
    put_level(p, s, "bound", bound_of(e), close ? upper : bound_y, text);
}

int picture_memory(FILE *f, const struct expect *e, const struct record *r,
                   struct fsdp_error *error)
{
    static const char *const legend[] = {"shard", "shards, which stay", "full",
                                         "the unit that is whole", NULL};
    struct scale s = {.most = e->total > bound_of(e) ? e->total : bound_of(e)};
    char title[128];
    struct picture p;

    FSDP_TRY(picture_make(f, e, r, &p, error));
    for (uint32_t i = 0; i < p.n; i++) {
        if (weights_at(&p.moment[i]) > s.most) {
            s.most = weights_at(&p.moment[i]);
        }
    }
    if (s.most == 0) {
        s.most = 1;
    }
    snprintf(title, sizeof(title),
             "Weights that one of %u ranks holds during a step", r->n_ranks);
    picture_open(&p, title, HEIGHT);
    put_columns(&p, &s);
    put_levels(&p, &s);
    picture_modules(&p, BOTTOM + 20);
    picture_legend(&p, HEIGHT - 14, legend);
    picture_close(&p);
    return FSDP_OK;
}

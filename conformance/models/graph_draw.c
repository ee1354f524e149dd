/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph_draw.c - draws a graph: modules, calls, units. No draw depends on what
 * the size keeps, so that a part of a graph is like the whole.
 */
#include "graph.h"
#include "graph_internal.h"

#include <fsdp/arith/philox.h>
#include <stdio.h>
#include <string.h>

struct chance {
    uint64_t seed, at;
};

/* 0 .. n - 1 */
static uint32_t below(struct chance *c, uint32_t n)
{
    const struct fsdp_philox_out b =
        fsdp_random_block(c->seed, GRAPH_STREAM, c->at / 4);

    return (uint32_t)(((uint64_t)b.word[c->at++ % 4] * n) >> 32);
}

static bool in_100(struct chance *c, uint32_t percent)
{
    return below(c, 100) < percent;
}

static uint32_t one_of(struct chance *c, const uint32_t *of, uint32_t n)
{
    return of[below(c, n)];
}

/* ---- Modules ----------------------------------------------------------- */

static void add_parameter(struct graph_module *m, const char *name,
                          uint32_t n_dims, uint64_t d0, uint64_t d1,
                          float scale)
{
    struct graph_parameter *p = &m->parameter[m->n_parameters++];

    snprintf(p->name, sizeof(p->name), "%s", name);
    p->n_dims = n_dims;
    p->shape[0] = d0;
    p->shape[1] = d1;
    p->scale = scale;
}

/* Adds a spare parameter, which no computation needs and which may have any
 * shape. */
static void add_spare(struct chance *c, struct graph_module *m)
{
    static const uint64_t shape[][3] = {{1, 1, 1},  {0, 1, 1}, {1, 1, 1},
                                        {13, 1, 1}, {2, 0, 3}, {3, 5, 1}};
    static const uint32_t dims[] = {0, 1, 1, 1, 3, 2};
    const uint32_t which = below(c, 6);
    const bool unseen = in_100(c, 50);
    struct graph_parameter *p;

    if (!in_100(c, 15) || m->n_parameters == GRAPH_OF_MODULE) {
        return;
    }
    add_parameter(m, "spare", dims[which], shape[which][0], shape[which][1],
                  0.5f);
    p = &m->parameter[m->n_parameters - 1];
    p->shape[2] = shape[which][2];
    p->idle = (uint8_t)(GRAPH_NEVER | (unseen ? WORKLOAD_UNSEEN : 0u));
}

static void add_parameters(struct chance *c, const struct graph *g,
                           struct graph_module *m)
{
    const uint64_t w = g->width;
    const uint64_t h = m->hidden;
    const bool shortcut = in_100(c, 35);

    switch (m->kind) {
    case GRAPH_BLOCK:
        if (shortcut) {
            add_parameter(m, "shortcut", 2, w, w, 0.5f);
        }
        break;
    case GRAPH_LINEAR:
        add_parameter(m, "weight", 2, w, w, 1.0f);
        break;
    case GRAPH_BIAS:
    case GRAPH_HEAD:
        add_parameter(m, "bias", 1, w, 0, 0.5f);
        break;
    case GRAPH_MLP:
        add_parameter(m, "up", 2, w, h, 1.0f);
        add_parameter(m, "bias", 1, h, 0, 0.5f);
        add_parameter(m, "down", 2, h, w, 1.0f);
        break;
    case GRAPH_NORM:
        add_parameter(m, "gamma", 1, w, 0, 0.5f);
        add_parameter(m, "beta", 1, w, 0, 0.5f);
        break;
    default:
        break;
    }
    add_spare(c, m);
}

/* Some microbatches leave a parameter without a gradient, or all do. */
static void draw_idle(struct chance *c, struct graph_module *m)
{
    for (uint32_t i = 0; i < m->n_parameters; i++) {
        const bool idle = in_100(c, 12) && m->kind != GRAPH_HEAD;
        const uint32_t bits =
            in_100(c, 40) ? GRAPH_NEVER : 1 + below(c, GRAPH_NEVER);

        if (idle) {
            m->parameter[i].idle |= (uint8_t)bits;
        }
    }
}

static uint32_t depth_of(const struct graph *g, int32_t m)
{
    uint32_t depth = 0;

    while (m > 0) {
        m = g->module[m].parent;
        depth++;
    }
    return depth;
}

/* Draws one of the blocks so far as the parent; the root is one. */
static int32_t draw_parent(struct chance *c, const struct graph *g, uint32_t n)
{
    uint32_t of[GRAPH_MODULES] = {0};
    uint32_t blocks = 0;

    for (uint32_t i = 0; i < n; i++) {
        if (g->module[i].kind == GRAPH_BLOCK && depth_of(g, (int32_t)i) < 3) {
            of[blocks++] = i;
        }
    }
    return (int32_t)one_of(c, of, blocks);
}

static void draw_modules(struct chance *c, struct graph *g)
{
    static const uint32_t hidden[] = {0, 1, 2, 3, 5, 7, 11, 13};
    static const uint32_t widths[] = {1, 2, 3, 3, 4, 5, 7};

    g->width = one_of(c, widths, 7);
    g->samples = 1 + below(c, 3);
    g->n_modules = 3 + below(c, GRAPH_MODULES - 4);
    for (uint32_t i = 0; i < g->n_modules; i++) {
        struct graph_module *m = &g->module[i];
        const uint32_t leaf = GRAPH_LINEAR + below(c, 5);
        const bool block = in_100(c, 25);

        m->drawn = i;
        m->hidden = one_of(c, hidden, 8);
        m->detached = in_100(c, 8);
        m->kind = block ? (uint32_t)GRAPH_BLOCK : leaf;
        m->parent = -1;
        if (i == 0) {
            m->kind = GRAPH_BLOCK;
            m->detached = false;
        } else if (i + 1 == g->n_modules) {
            m->kind = GRAPH_HEAD;
            m->parent = 0;
            m->detached = false;
        } else {
            m->parent = draw_parent(c, g, i);
        }
        add_parameters(c, g, m);
        draw_idle(c, m);
    }
}

/* ---- Calls ------------------------------------------------------------- */

static uint32_t uses_of(const struct graph *g, uint32_t module)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < g->n_calls; i++) {
        n += g->call[i].module == module;
    }
    return n;
}

static uint32_t draw_sequences(struct chance *c, bool other_eval)
{
    const uint32_t die = below(c, 100);

    if (!other_eval) {
        return GRAPH_TRAIN | GRAPH_EVAL;
    }
    return die < 25   ? (uint32_t)GRAPH_TRAIN
           : die < 35 ? (uint32_t)GRAPH_EVAL
                      : GRAPH_TRAIN | GRAPH_EVAL;
}

/* The state of drawing calls: a block's children are still to be called. */
struct calling {
    struct chance *c;
    struct graph *g;
    bool other_eval;
    bool unused[GRAPH_MODULES];
};

static bool add_call(struct calling *x, uint32_t module, int32_t around)
{
    struct graph *g = x->g;
    const uint32_t in = draw_sequences(x->c, x->other_eval);

    /* The last place is the head's. */
    if (g->n_calls + 1 >= GRAPH_CALLS || uses_of(g, module) >= GRAPH_USES) {
        return false;
    }
    g->call[g->n_calls++] =
        (struct graph_call){.module = module, .around = around, .in = in};
    return true;
}

/* Calls a leaf from anywhere in the tree once more. */
static void call_again(struct calling *x, int32_t around)
{
    const uint32_t m = 1 + below(x->c, x->g->n_modules - 1);

    if (in_100(x->c, 15) && x->g->module[m].kind != GRAPH_BLOCK &&
        x->g->module[m].kind != GRAPH_HEAD) {
        (void)add_call(x, m, around);
    }
}

/* As deep as the tree, whose depth is bounded: 4.
 * NOLINTNEXTLINE(misc-no-recursion) */
static void call_children(struct calling *x, uint32_t block, int32_t around)
{
    const struct graph *g = x->g;
    const bool backwards = in_100(x->c, 20);

    for (uint32_t k = 1; k + 1 < g->n_modules; k++) {
        const uint32_t m = backwards ? g->n_modules - 1 - k : k;
        const uint32_t times = 1 + in_100(x->c, 15);

        if (g->module[m].parent != (int32_t)block || x->unused[m]) {
            continue;
        }
        for (uint32_t i = 0; i < times; i++) {
            const int32_t at = (int32_t)g->n_calls;

            if (add_call(x, m, around) && g->module[m].kind == GRAPH_BLOCK) {
                call_children(x, m, at);
            }
            call_again(x, around);
        }
    }
}

static void draw_calls(struct chance *c, struct graph *g)
{
    struct calling x = {.c = c, .g = g, .other_eval = in_100(c, 50)};

    for (uint32_t m = 1; m + 1 < g->n_modules; m++) {
        x.unused[m] = in_100(c, 12);
    }
    (void)add_call(&x, 0, -1);
    call_children(&x, 0, 0);
    g->call[g->n_calls++] =
        (struct graph_call){.module = g->n_modules - 1, .around = 0};
    g->call[0].in = g->call[g->n_calls - 1].in = GRAPH_TRAIN | GRAPH_EVAL;
}

/* ---- Units ------------------------------------------------------------- */

/* A marked module and what is below it, as wrap policies do. */
static void group_by_marks(struct chance *c, struct graph *g)
{
    for (uint32_t m = 1; m < g->n_modules; m++) {
        const bool block = g->module[m].kind == GRAPH_BLOCK;

        g->module[m].group = in_100(c, block ? 60 : 30)
                                 ? m
                                 : g->module[g->module[m].parent].group;
    }
}

static void group_siblings(struct chance *c, struct graph *g)
{
    group_by_marks(c, g);
    for (uint32_t m = 2; m < g->n_modules; m++) {
        if (in_100(c, 40)) {
            const uint32_t other = 1 + below(c, m - 1);

            if (g->module[other].parent == g->module[m].parent) {
                g->module[m].group = g->module[other].group;
            }
        }
    }
}

static void draw_groups(struct chance *c, struct graph *g)
{
    const uint32_t how = below(c, 5);
    const uint32_t labels = 1 + below(c, 5);

    for (uint32_t m = 0; m < g->n_modules; m++) {
        const uint32_t label = below(c, labels);

        g->module[m].group = how == 1 ? m : how == 4 ? label : 0;
        g->module[m].in_unit = in_100(c, 30);
    }
    if (how == 2) {
        group_by_marks(c, g);
    } else if (how == 3) {
        group_siblings(c, g);
    }
    g->own_reshard = in_100(c, 30);
    for (uint32_t m = 0; m < GRAPH_MODULES; m++) {
        g->reshard[m] = below(c, 3);
    }
}

void graph_draw_all(uint64_t seed, struct graph *out)
{
    struct chance c = {.seed = seed};

    memset(out, 0, sizeof(*out));
    draw_modules(&c, out);
    draw_calls(&c, out);
    draw_groups(&c, out);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* trace_expected.c - see trace_expected.h. */
#include "run/witness/trace_expected.h"
#include "judge/oracle/expect_walk.h"

#include <stdlib.h>

static bool is_of_module(const struct trace_mark_made *m)
{
    return !m->is_live && m->point >= FSDP_PRE_FORWARD &&
           m->point <= FSDP_POST_RECOMPUTE;
}

/* Writes a slice for each module, from its PRE point to its POST point. */
static void put_modules(const struct trace_marks *m, const struct expect *e,
                        FILE *f, uint32_t rank)
{
    for (uint32_t i = 0; i < m->n; i++) {
        const struct trace_mark_made *pre = &m->mark[i];
        uint32_t k = i + 1;

        if (!is_of_module(pre) || !expect_is_pre(pre->point) ||
            pre->module >= e->model->n_modules) {
            continue;
        }
        while (k < m->n &&
               (m->mark[k].is_live || m->mark[k].point != pre->point + 1 ||
                m->mark[k].module != pre->module)) {
            k++;
        }
        if (k < m->n) {
            const char *name = e->model->module_name[pre->module];

            trace_put_slice(f, rank, TRACK_MODULES, name[0] ? "" : "(root)",
                            name, pre->ns, m->mark[k].ns);
        }
    }
}

/* ---- Windows, as the oracle has them ----------------------------------- */

/* The points of one pass. */
struct pass {
    uint32_t n;
    uint32_t *point, *module;
    uint64_t *ns;
    uint64_t *opened; /* [n_units] */
};

static void put_pass(const struct expect *e, const struct pass *p, FILE *f,
                     uint32_t rank)
{
    const struct fsdp_sequence s = {
        .size = sizeof(s), .n = p->n, .point = p->point, .module = p->module};

    struct expect_stop *stop = NULL;
    uint32_t n = 0;

    /* A pass that was cancelled has a window that never closes. */
    if (p->n == 0 || expect_windows(e, &s, &stop, &n) != FSDP_OK) {
        n = 0;
    }
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t u = stop[i].unit;

        if ((stop[i].flags & EXPECT_OPENS) != 0) {
            p->opened[u] = p->ns[stop[i].point];
        }
        if ((stop[i].flags & EXPECT_CLOSES) != 0) {
            trace_put_slice(f, rank, TRACK_UNITS + u, "whole", "", p->opened[u],
                            p->ns[stop[i].point]);
        }
    }
    free(stop);
}

static void put_windows(const struct trace_marks *m, const struct expect *e,
                        FILE *f, uint32_t rank)
{
    const size_t n = m->n + 1u;
    struct pass p = {.point = calloc(n, sizeof(*p.point)),
                     .module = calloc(n, sizeof(*p.module)),
                     .ns = calloc(n, sizeof(*p.ns)),
                     .opened =
                         calloc(e->units->n_units + 1u, sizeof(*p.opened))};
    const bool room = p.point && p.module && p.ns && p.opened;

    for (uint32_t i = 0; i < m->n && room; i++) {
        const struct trace_mark_made *x = &m->mark[i];

        if (x->is_live) {
            continue;
        }
        if (is_of_module(x) && x->module < e->model->n_modules) {
            p.point[p.n] = x->point;
            p.module[p.n] = x->module;
            p.ns[p.n++] = x->ns;
            continue;
        }
        put_pass(e, &p, f, rank);
        p.n = 0;
    }
    free(p.opened);
    free(p.ns);
    free(p.module);
    free(p.point);
}

void trace_expected_write(const struct trace_marks *m, const struct expect *e,
                          FILE *f, uint32_t rank)
{
    char name[96];

    if (m->n == 0) {
        return;
    }
    trace_put_track(f, rank, TRACK_MODULES, "modules", "");
    put_modules(m, e, f, rank);
    for (uint32_t u = 0; u < e->units->n_units; u++) {
        snprintf(name, sizeof(name), "unit %u", u);
        trace_put_track(f, rank, TRACK_UNITS + u, "expected window of ", name);
    }
    put_windows(m, e, f, rank);
    trace_put_counter(f, rank, m->mark[0].ns, "memory bound", e->peak_engine);
    trace_put_counter(f, rank, m->mark[m->n - 1].ns, "memory bound",
                      e->peak_engine);
}

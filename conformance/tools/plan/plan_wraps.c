/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_wraps.c - tries units from the smallest to the largest.
 */
#include "tools/plan/plan_wraps.h"
#include "record/record_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Plans the case of `ask` with these units: into *row, which takes what the
 * table has. */
static int try_units(const struct plan_ask *ask, const struct plan_model *m,
                     const struct plan_batch *batch, const struct cluster *on,
                     uint64_t memory, uint64_t activations,
                     struct plan_row *row, struct fsdp_error *error)
{
    struct plan_table t;
    int status = plan_table_make(ask, true, on->host_ranks, memory, activations,
                                 &t, error);

    if (status == FSDP_OK) {
        status = plan_table_time(ask, m, batch, on, &t, error);
    }
    if (status == FSDP_OK) {
        *row = t.row[0];
        t.n = 0;
    }
    plan_table_release(&t);
    return status;
}

static int try_wrap(const struct plan_ask *ask, const struct plan_model *m,
                    const struct plan_batch *batch, const struct cluster *on,
                    uint64_t memory, uint64_t activations,
                    struct plan_wrap *wrap, struct fsdp_error *error)
{
    struct wrap_units units;
    struct plan_ask one = *ask;
    int status = plan_units(m, wrap->units, &units);

    if (status == FSDP_OK) {
        one.units = &units.units;
        status = try_units(&one, m, batch, on, memory, activations, &wrap->row,
                           error);
    }
    wrap_release(&units);
    return status == FSDP_OK ? FSDP_OK
                             : record_fail(error, status, "plan", "%s",
                                           fsdp_status_text(status));
}

int plan_wraps_make(const struct plan_ask *ask, const struct plan_model *m,
                    const struct plan_batch *batch, const struct cluster *on,
                    uint64_t memory, uint64_t activations,
                    struct plan_wraps *out, struct fsdp_error *error)
{
    const struct plan_row *best = NULL;
    uint32_t next = UINT32_MAX; /* a leaf; then 1, 2, 4 ..., and all */

    memset(out, 0, sizeof(*out));
    while (out->n < PLAN_MAX_WRAPS) {
        struct plan_wrap *const w = &out->wrap[out->n];

        w->units = next;
        FSDP_TRY(try_wrap(ask, m, batch, on, memory, activations, w, error));
        out->n++;
        if (next == 0) {
            break;
        }
        next = next == UINT32_MAX ? 1 : 2 * next;
        next = next >= m->units.units.n_units ? 0 : next;
    }
    out->best = out->n;
    for (uint32_t i = 0; i < out->n; i++) {
        const struct plan_row *const row = &out->wrap[i].row;

        if (row->possible && row->fits &&
            (!best || row->time.seconds < best->time.seconds)) {
            best = row;
            out->best = i;
        }
    }
    return FSDP_OK;
}

void plan_wraps_release(struct plan_wraps *w)
{
    for (uint32_t i = 0; i < w->n; i++) {
        plan_bytes_release(&w->wrap[i].row.bytes);
        plan_time_release(&w->wrap[i].row.time);
    }
    memset(w, 0, sizeof(*w));
}

void plan_wraps_show(const struct plan_wraps *w, uint64_t memory)
{
    printf("\nunits of %s, from small to large\n"
           "%-14s %6s %14s %16s %10s %10s\n",
           case_strategy_name(w->wrap[0].row.c.strategy), "a unit is", "units",
           "largest", "peak", "step, ms", "exposed");
    for (uint32_t i = 0; i < w->n; i++) {
        const struct plan_row *const row = &w->wrap[i].row;
        char name[24];

        if (!row->possible) {
            printf("no mesh of this world\n");
            return;
        }
        snprintf(name, sizeof(name), "%u as one", w->wrap[i].units);
        printf("%-14s %6u %14" PRIu64 " %16" PRIu64 " %10.3f %10.3f%s%s\n",
               w->wrap[i].units == UINT32_MAX ? "leaf"
               : w->wrap[i].units == 0        ? "whole"
               : w->wrap[i].units == 1        ? "as described"
                                              : name,
               row->bytes.units, row->bytes.largest, row->bytes.peak_sum,
               1e3 * row->time.seconds, 1e3 * row->time.exposed,
               memory == 0 || row->fits ? "" : "  too large",
               i == w->best ? "  <- fastest" : "");
    }
}

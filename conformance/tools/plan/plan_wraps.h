/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_wraps.h - finds the best units by trying: one for each leaf, as
 * described, several of these as one, one for all.
 */
#ifndef FSDP_CTS_PLAN_WRAPS_H
#define FSDP_CTS_PLAN_WRAPS_H

#include "tools/plan/plan_advice.h"

enum {
    PLAN_MAX_WRAPS = 16
};

/* One way to cut a model into units, under one strategy. */
struct plan_wrap {
    uint32_t units; /* as plan_units takes it */
    struct plan_row row;
};

struct plan_wraps {
    uint32_t n;
    struct plan_wrap wrap[PLAN_MAX_WRAPS];
    uint32_t best; /* the one that fits and takes least time; n: none fits */
};

/* `ask->units` is ignored. As plan_table_make and plan_table_time. *out is to
 * be released whatever is returned. */
int plan_wraps_make(const struct plan_ask *ask, const struct plan_model *m,
                    const struct plan_batch *batch, const struct cluster *on,
                    uint64_t memory, uint64_t activations,
                    struct plan_wraps *out, struct fsdp_error *error);
void plan_wraps_release(struct plan_wraps *w);
void plan_wraps_show(const struct plan_wraps *w, uint64_t memory);

#endif

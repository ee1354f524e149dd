/* SPDX-License-Identifier: Apache-2.0 */
/* plan_show.h - prints a plan, for people and as JSON. */
#ifndef FSDP_CTS_PLAN_SHOW_H
#define FSDP_CTS_PLAN_SHOW_H

#include "tools/plan/plan_advice.h"
#include "tools/plan/plan_model.h"

struct plan_shown {
    const struct plan_model *model;
    const struct plan_ask *ask;
    const struct plan_table *table;
    const struct cluster *cluster; /* NULL: no time was asked for */
    const struct plan_batch *batch;
};

void plan_show_text(const struct plan_shown *s);
/* NULL: out of memory. The caller's. */
json_t *plan_show_json(const struct plan_shown *s);

/* "16.06 GB", as 10^9 bytes. */
enum {
    PLAN_SIZE_BYTES = 24
};
const char *plan_size(uint64_t bytes, char text[PLAN_SIZE_BYTES]);

/* "gathered in bf16, reduced in f32" */
enum {
    PLAN_DTYPES_BYTES = 48
};
const char *plan_dtypes(const struct run_case *c, char text[PLAN_DTYPES_BYTES]);

#endif

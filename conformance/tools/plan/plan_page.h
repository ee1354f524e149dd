/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_page.h - one strategy as a page that needs no other file: memory over a
 * step under its bound, and when compute and links are busy.
 */
#ifndef FSDP_CTS_PLAN_PAGE_H
#define FSDP_CTS_PLAN_PAGE_H

#include "tools/plan/plan_advice.h"

struct plan_page {
    const struct plan_model *model;
    const struct plan_ask *ask; /* its case is the row's */
    const struct plan_row *row; /* with a time, or without */
    const char *cluster;        /* the name of the cluster; NULL: no time */
    uint64_t memory, activations;
};

/* Writes the whole page or nothing. IO; NOMEM. */
int plan_page_write(const struct plan_page *p, const char *path,
                    struct fsdp_error *error);

#endif

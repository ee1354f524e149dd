/* SPDX-License-Identifier: Apache-2.0 */
/* page_internal.h - shared by page*.c alone. */
#ifndef FSDP_CTS_PAGE_INTERNAL_H
#define FSDP_CTS_PAGE_INTERNAL_H

#include "judge/draw/page_plot.h"
#include "tools/track/track_judge.h"

struct page {
    FILE *f;
    struct history *h;
    struct fsdp_error *error;
    struct track_verdict v;
    uint32_t n_plots; /* so far, for their ids */
    const char *commit_url;
};

/* All series of one case of an engine on a machine: first .. first + n - 1. */
struct page_case {
    uint32_t first, n;
    uint32_t worse, better; /* changes */
    double weight;          /* of what changed; see weight_of in page.c */
};

/* The figures of one case. FORMAT, NOMEM. */
int page_memory_plot(struct page *page, const struct history_series *s);
int page_timed_plot(struct page *page, const struct history_series *s);

#endif

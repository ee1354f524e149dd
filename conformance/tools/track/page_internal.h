/* SPDX-License-Identifier: Apache-2.0 */
/* page_internal.h - shared by page*.c, and by nobody else. */
#ifndef FSDP_CTS_PAGE_INTERNAL_H
#define FSDP_CTS_PAGE_INTERNAL_H

#include "tools/track/page_text.h"
#include "tools/track/track_judge.h"

struct page {
    FILE *f;
    struct history *h;
    struct fsdp_error *error;
    struct track_verdict v;
    uint32_t n_plots; /* so far: ids */
};

/* All of one case of an engine on a machine: series first .. first + n - 1. */
struct page_case {
    uint32_t first, n;
    uint32_t worse, better; /* changes */
    bool in_newest;         /* run */
};

/* Where things are in a plot, in the units of its viewBox. */
enum {
    PLOT_WIDTH = 400,
    PLOT_HEIGHT = 210,
    PLOT_LEFT = 56,
    PLOT_RIGHT = 388,
    PLOT_TOP = 14,
    PLOT_BOTTOM = 174
};

struct plot {
    FILE *f;
    uint32_t n;       /* points along the axis */
    double low, high; /* of the values */
    bool bytes;       /* how they are written */
};

/* page_plot.c: an axis of values with three to five lines. */
void plot_range(struct plot *p, double low, double high, bool from_zero);
double plot_step(const struct plot *p); /* between lines */
double plot_x(const struct plot *p, double i);
double plot_y(const struct plot *p, double value);
const char *plot_value(const struct plot *p, double value,
                       char out[PAGE_NUMBER_BYTES]);
/* <figure>, its caption and <svg> with title and description; */
void plot_open(struct page *page, const char *title, const char *description);
void plot_grid(const struct plot *p);
void plot_close(struct page *page);

/* The figures of one case. FORMAT, NOMEM. */
int page_memory_plot(struct page *page, const struct history_series *s);
int page_timed_plot(struct page *page, const struct history_series *s);
int page_step_plot(struct page *page, const struct history_series *s);

#endif

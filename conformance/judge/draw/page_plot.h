/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page_plot.h - what all plots of pages have in common: a frame that scales
 * with the screen, and an axis of values with round numbers.
 */
#ifndef FSDP_CTS_PAGE_PLOT_H
#define FSDP_CTS_PAGE_PLOT_H

#include "judge/draw/page_text.h"

#include <stdbool.h>

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
    bool bytes;       /* how the values are written */
};

/* Bounds that are round numbers, for three to five lines. */
void plot_range(struct plot *p, double low, double high, bool from_zero);
double plot_step(const struct plot *p); /* between lines */
double plot_x(const struct plot *p, double i);
double plot_y(const struct plot *p, double value);
/* Opens a <figure> with its caption, and an <svg> with title and description.
 * `id` must differ from those of all other plots of the page. */
void plot_open(FILE *f, uint32_t id, const char *title,
               const char *description);
void plot_grid(const struct plot *p);
void plot_close(FILE *f); /* </svg>; the figure stays open */

#endif

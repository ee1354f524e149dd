/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page_memory.h - memory over one step, by kind: which unit made the peak, and
 * how far it is from the bound.
 */
#ifndef FSDP_CTS_PAGE_MEMORY_H
#define FSDP_CTS_PAGE_MEMORY_H

#include "judge/judge.h"

#include <stdio.h>

struct memory_plot {
    FILE *f;
    const struct judge_moment *moment; /* [n]; n is not 0 */
    uint32_t n;
    const char (*unit)[64]; /* [n_units]: names */
    uint32_t n_units;
    uint32_t step;     /* for the title */
    const char *whose; /* "ranks 1, 2"; NULL: rank 0 */
    bool has_bound;
    uint64_t bound; /* bytes of all kinds but activations */
};

enum {
    MEMORY_PLOT_TITLE_BYTES = 160,
    MEMORY_PLOT_WORDS_BYTES = 320
};

/* A title, and the drawing in words for those who do not see it. */
void memory_plot_words(const struct memory_plot *m,
                       char title[MEMORY_PLOT_TITLE_BYTES],
                       char words[MEMORY_PLOT_WORDS_BYTES]);
/* Draws the inside of an <svg> or a <symbol> of PLOT_WIDTH by PLOT_HEIGHT. */
void memory_plot_draw(const struct memory_plot *m);
/* What stands below the drawing: each kind that occurs, how much of it there is
 * in the fullest moment, and where that moment is. */
void memory_plot_legend(const struct memory_plot *m);
/* The whole <figure>; `id` is as for plot_open. */
void memory_plot(const struct memory_plot *m, uint32_t id);

#endif

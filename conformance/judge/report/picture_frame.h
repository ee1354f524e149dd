/* SPDX-License-Identifier: Apache-2.0 */
/*
 * picture_frame.h - what both drawings of a step have in common: a frame with
 * colours for light and dark, and a column for each call. Internal to
 * picture_*.c.
 */
#ifndef FSDP_CTS_PICTURE_FRAME_H
#define FSDP_CTS_PICTURE_FRAME_H

#include "judge/report/picture.h"

enum {
    PICTURE_WIDTH = 800, /* as wide as a page on GitHub shows it */
    PICTURE_LEFT = 76,
    PICTURE_RIGHT = 788,
};

struct picture {
    FILE *f;
    const struct expect *e;
    const struct record *r;
    const struct record_moment *moment; /* [n]: one for each column */
    uint32_t n;
    double column; /* the width of a column */
    bool inside;   /* it stands in a page, which has style, ground and title */
};

/* INVALID: rank 0 has no timeline, or one of its points is of a module that
 * does not exist. */
int picture_make(FILE *f, const struct expect *e, const struct record *r,
                 struct picture *out, struct fsdp_error *error);

void picture_open(const struct picture *p, const char *title, uint32_t height);
void picture_close(const struct picture *p);

/* The left edge of column i. */
double picture_x(const struct picture *p, double i);
/* A box from the left edge of column `from` on, `columns` columns wide. */
void picture_box(const struct picture *p, const char *class, double from,
                 double columns, double y, double height);
/* Writes a text, escaped, that begins at x; the classes "middle" and "end" let
 * it be centred, or end, there. */
void picture_text(const struct picture *p, const char *class, double x,
                  double y, const char *text);
/* Draws the computing modules in a row, and the passes above it. */
void picture_modules(const struct picture *p, double y);

/* A row of boxes, each with its meaning. NULL-ended: class, text, class, ... */
void picture_legend(const struct picture *p, double y,
                    const char *const *entries);

#endif

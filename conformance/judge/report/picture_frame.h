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
    const struct record_moment *moment; /* [n]: the columns */
    uint32_t n;
    double column; /* how wide one is */
    bool inside;   /* a page, which has style, ground and title */
};

/* INVALID: rank 0 has no timeline, or points to a module that is none. */
int picture_make(FILE *f, const struct expect *e, const struct record *r,
                 struct picture *out, struct fsdp_error *error);

void picture_open(const struct picture *p, const char *title, uint32_t height);
void picture_close(const struct picture *p);

/* The left edge of column i. */
double picture_x(const struct picture *p, double i);
/* From the left edge of column `from`, `columns` wide. */
void picture_box(const struct picture *p, const char *class, double from,
                 double columns, double y, double height);
/* The text is escaped; class "middle" and "end" anchor it elsewhere. */
void picture_text(const struct picture *p, const char *class, double x,
                  double y, const char *text);
/* The modules that compute, in a row, and over it the passes. */
void picture_modules(const struct picture *p, double y);

/* A line of boxes with what they mean, NULL-ended: class, text, class, ... */
void picture_legend(const struct picture *p, double y,
                    const char *const *entries);

#endif

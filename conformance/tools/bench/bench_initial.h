/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_initial.h - initial values of models that are only measured.
 *
 * Drawing each value of a model of billions takes minutes, in which a GPU
 * stands still. So of each parameter of a large model only the first values are
 * drawn, and then repeated. Their number is a prime, and so no multiple of a
 * row: no two rows are alike.
 */
#ifndef FSDP_CTS_BENCH_INITIAL_H
#define FSDP_CTS_BENCH_INITIAL_H

#include <fsdp/model.h>

enum {
    BENCH_INITIAL_DRAWN = 65521, /* of each parameter; a prime */
    BENCH_INITIAL_LARGE = 32
                          << 20 /* elements; smaller models stay as they are */
};

struct bench_initial;
/* Replaces the model's initial values by these. *out is NULL if the model is
 * small. */
int bench_initial_open(struct fsdp_model *model, struct bench_initial **out);
/* The model must not be asked for values any more. NULL is allowed. */
void bench_initial_close(struct bench_initial *initial);

#endif

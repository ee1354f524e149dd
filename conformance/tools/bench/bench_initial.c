/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_initial.c - few values, often.
 */
#include "tools/bench/bench_initial.h"

#include <fsdp/status.h>
#include <stdlib.h>
#include <string.h>

struct bench_initial {
    const struct fsdp_model *model;
    int (*initial)(void *context, uint32_t p, uint64_t first, uint64_t n,
                   void *out);
    void *context;
    uint32_t p; /* the parameter whose values these are; UINT32_MAX: none */
    float value[BENCH_INITIAL_DRAWN];
};

static int repeat(void *self, uint32_t p, uint64_t first, uint64_t n, void *out)
{
    struct bench_initial *x = self;
    uint64_t all = p < x->model->n_parameters ? fsdp_numel(x->model, p) : 0;
    float *to = out;
    uint64_t some;

    if (first > all || n > all - first || all <= BENCH_INITIAL_DRAWN) {
        return x->initial(x->context, p, first, n, out); /* or it refuses */
    }
    if (x->p != p) {
        x->p = UINT32_MAX;
        FSDP_TRY(x->initial(x->context, p, 0, BENCH_INITIAL_DRAWN, x->value));
        x->p = p;
    }
    for (uint64_t done = 0; done < n; done += some) {
        uint64_t at = (first + done) % BENCH_INITIAL_DRAWN;
        some = BENCH_INITIAL_DRAWN - at;
        some = n - done < some ? n - done : some;
        memcpy(to + done, x->value + at, some * sizeof(*to));
    }
    return FSDP_OK;
}

int bench_initial_open(struct fsdp_model *model, struct bench_initial **out)
{
    struct bench_initial *x;
    uint64_t all = 0;

    *out = NULL;
    for (uint32_t p = 0; p < model->n_parameters; p++) {
        all += fsdp_numel(model, p);
    }
    if (all < BENCH_INITIAL_LARGE) {
        return FSDP_OK;
    }
    x = calloc(1, sizeof(*x));
    if (!x) {
        return FSDP_ERR_NOMEM;
    }
    x->model = model;
    x->initial = model->initial;
    x->context = model->context;
    x->p = UINT32_MAX;
    model->initial = repeat;
    model->context = x;
    *out = x;
    return FSDP_OK;
}

void bench_initial_close(struct bench_initial *initial)
{
    free(initial);
}

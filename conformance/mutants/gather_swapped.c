/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gather_swapped.c - what two ranks sent stands in the wrong order.
 */
#include "mutants/wrap_kit.h"

static int swap(struct fsdp_stream *stream, float *p, float *q, uint64_t n)
{
    float a[64];
    float b[64];

    FSDP_TRY(mutant_get(stream, p, n, a));
    FSDP_TRY(mutant_get(stream, q, n, b));
    FSDP_TRY(mutant_put(stream, b, n, p));
    return mutant_put(stream, a, n, q);
}

static int run(void *self, struct fsdp_stream *stream,
               const struct fsdp_collective *c)
{
    (void)self;
    float *out = c->out;

    FSDP_TRY(mutant_communicate(stream, c));
    for (uint64_t i = 0; c->kind == FSDP_ALL_GATHER && i < c->n; i += 64) {
        uint64_t n = c->n - i < 64 ? c->n - i : 64;

        FSDP_TRY(swap(stream, out + i, out + c->n + i, n));
    }
    return FSDP_OK;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_comm(env)->run = run;
}

MUTANT(gather_swapped) = {
    .name = "gather-swapped",
    .text = "the parts of ranks 0 and 1 are exchanged in what is "
            "gathered",
    .evidence = "X36: NVIDIA/physicsnemo#1614",
    .kills = "gather.unsharded-values",
    .shows = mutant_plain,
    .wrap = wrap,
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_moments_order.c - moments are saved in another order than that in
 * which they are loaded.
 */
#include "mutants/wrap_kit.h"

#include <stdlib.h>

/* What belongs to the first element comes last. */
static void change(const struct fsdp_piece *piece)
{
    float *x = malloc(piece->n * sizeof *x);

    if (x && mutant_get(NULL, piece->state[0], piece->n, x) == FSDP_OK) {
        for (uint64_t i = 0; i < piece->n / 2; i++) {
            float first = x[i];
            x[i] = x[piece->n - 1 - i];
            x[piece->n - 1 - i] = first;
        }
        (void)mutant_put(NULL, x, piece->n, (void *)piece->state[0]);
    }
    free(x);
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_after_load(engine, change);
}

MUTANT(checkpoint_moments_order) = {
    .name = "checkpoint-moments-order",
    .text = "a load brings the first moments back in another order",
    .evidence = "X36: NVIDIA/physicsnemo#1597",
    .kills = "checkpoint.canonical checkpoint.moments",
    .shows = mutant_resume,
    .wrap = wrap,
};

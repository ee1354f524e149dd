/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_padding_saved.c - flat parameters are saved with their padding,
 * and cut up again as if there were none.
 */
#include "mutants/wrap_kit.h"

#include <stdlib.h>

/* Padding comes before what lies behind it. */
static void change(const struct fsdp_piece *piece)
{
    float *x = calloc(piece->n + 1, sizeof *x);

    if (x && piece->parameter > 0 &&
        mutant_get(NULL, piece->value, piece->n, x + 1) == FSDP_OK) {
        (void)mutant_put(NULL, x, piece->n, (void *)piece->value);
    }
    free(x);
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_after_load(engine, change);
}

MUTANT(checkpoint_padding_saved) = {
    .name = "checkpoint-padding-saved",
    .text = "padding takes the place of parameters after a load",
    .evidence = "X46: pytorch/pytorch#83111",
    .kills = "checkpoint.canonical checkpoint.parameters",
    .shows = mutant_resume,
    .wrap = wrap,
};

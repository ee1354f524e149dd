/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_uneven_as_even.c - a tensor of 9 rows on one rank and 7 on another
 * is recorded as 8 and 8: what is loaded lies one element off.
 */
#include "mutants/wrap_kit.h"

#include <stdlib.h>

static void change(const struct fsdp_piece *piece)
{
    const void *all[] = {piece->value, piece->state[0], piece->state[1]};
    float *x = malloc(piece->n * sizeof *x);

    for (uint32_t k = 0; x && k < 3 && piece->first > 0; k++) {
        if (all[k] && mutant_get(NULL, all[k], piece->n, x) == FSDP_OK) {
            for (uint64_t i = piece->n - 1; i > 0; i--) {
                x[i] = x[i - 1];
            }
            (void)mutant_put(NULL, x, piece->n, (void *)all[k]);
        }
    }
    free(x);
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_after_load(engine, change);
}

MUTANT(checkpoint_uneven_as_even) = {
    .name = "checkpoint-uneven-as-even",
    .text = "shards that are not the first are loaded one element off",
    .evidence = "X35: NVIDIA/Megatron-LM (9/7 recorded as 8/8)",
    .kills = "checkpoint.canonical checkpoint.moments checkpoint.parameters",
    .shows = mutant_resume,
    .wrap = wrap,
};

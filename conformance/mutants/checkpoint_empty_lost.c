/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_empty_lost.c - a rank without a part of some parameter has no
 * optimizer state after a load.
 */
#include "mutants/wrap_kit.h"

#include <string.h>

static _Thread_local uint32_t n_pieces;

static void count(void *context, const struct fsdp_piece *piece)
{
    (void)context;
    (void)piece;
    n_pieces++;
}

static float nothing(float x)
{
    return x * 0.0f;
}

static void lose(void *context, const struct fsdp_piece *piece)
{
    (void)context;
    if (piece->state[0]) {
        (void)mutant_each(NULL, (void *)piece->state[0], piece->n, nothing);
    }
}

static int load(struct fsdp_sharded *s, const char *directory)
{
    n_pieces = 0;
    FSDP_TRY(mutant_real.engine.load(s, directory));
    FSDP_TRY(mutant_real.engine.pieces(s, count, NULL));
    return n_pieces < mutant_real.world
               ? mutant_real.engine.pieces(s, lose, NULL)
               : FSDP_OK;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    engine->load = load;
}

static bool shows(const struct run_case *c)
{
    return c->scenario == CASE_RESUME && strcmp(c->size, "empty") == 0 &&
           c->ranks > c->replicas;
}

MUTANT(checkpoint_empty_lost) = {
    .name = "checkpoint-empty-lost",
    .text = "moments are lost on ranks that own few parameters",
    .evidence = "X34: pytorch/pytorch#102821",
    .kills = "checkpoint.canonical checkpoint.moments",
    .shows = shows,
    .wrap = wrap,
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_load_elsewhere.c - what is loaded does not reach the weights that
 * are trained.
 */
#include "mutants/wrap_kit.h"

#include <stdlib.h>

static _Thread_local float *before;
static _Thread_local uint64_t room, used;

static void look(void *context, const struct fsdp_piece *piece)
{
    float *more = realloc(before, (used + piece->n) * sizeof *more);

    (void)context;
    if (more) {
        before = more;
        (void)mutant_get(NULL, piece->value, piece->n, before + used);
        used += piece->n;
    }
}

static void put_back(void *context, const struct fsdp_piece *piece)
{
    (void)context;
    (void)mutant_put(NULL, before + room, piece->n, (void *)piece->value);
    room += piece->n;
}

static int load(struct fsdp_sharded *s, const char *directory)
{
    int status;

    used = room = 0;
    (void)mutant_real.engine.pieces(s, look, NULL);
    status = mutant_real.engine.load(s, directory);
    if (status == FSDP_OK) {
        (void)mutant_real.engine.pieces(s, put_back, NULL);
    }
    free(before);
    before = NULL;
    return status;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    engine->load = load;
}

MUTANT(checkpoint_load_elsewhere) = {
    .name = "checkpoint-load-elsewhere",
    .text = "a load leaves the parameters of the live shards as they were",
    .evidence = "X38: ISEEKYAN/Megatron-LM#104",
    .kills = "checkpoint.canonical checkpoint.parameters",
    .shows = mutant_resume,
    .wrap = wrap,
};

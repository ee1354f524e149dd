/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gather_drops_element.c - the last element that rank 0 sends does not
 * arrive.
 */
#include "mutants/wrap_kit.h"

static int run(void *self, struct fsdp_stream *stream,
               const struct fsdp_collective *c)
{
    (void)self;
    const float zero = 0.0f;

    FSDP_TRY(mutant_communicate(stream, c));
    if (c->kind != FSDP_ALL_GATHER || c->n == 0) {
        return FSDP_OK;
    }
    return mutant_put(stream, &zero, 1, (float *)c->out + c->n - 1);
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_comm(env)->run = run;
}

MUTANT(gather_drops_element) = {
    .name = "gather-drops-element",
    .text = "one element of each unit arrives as 0",
    .evidence = "X35: uneven shards recorded as even ones",
    .kills = "gather.unsharded-values",
    .shows = mutant_plain,
    .wrap = wrap,
};

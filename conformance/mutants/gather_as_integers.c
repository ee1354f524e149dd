/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gather_as_integers.c - parameters travel as integers: the same bytes by
 * another name.
 */
#include "mutants/wrap_kit.h"

static int run(void *self, struct fsdp_stream *stream,
               const struct fsdp_collective *c)
{
    (void)self;
    struct fsdp_collective x = *c;

    if (c->kind == FSDP_ALL_GATHER) {
        x.dtype = FSDP_DTYPE_I32;
    }
    return mutant_communicate(stream, &x);
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_comm(env)->run = run;
}

MUTANT(gather_as_integers) = {
    .name = "gather-as-integers",
    .text = "all-gathers are declared as int32",
    .evidence = "X27: a dtype on the wire that is not the declared one",
    .kills = "comm.dtype",
    .shows = mutant_plain,
    .wrap = wrap,
};

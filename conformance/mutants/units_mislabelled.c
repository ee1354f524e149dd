/* SPDX-License-Identifier: Apache-2.0 */
/*
 * units_mislabelled.c - collectives of units are issued in an order that is
 * not that of their windows.
 */
#include "mutants/wrap_kit.h"

#include <string.h>

static int run(void *self, struct fsdp_stream *stream,
               const struct fsdp_collective *c)
{
    (void)self;
    struct fsdp_collective x = *c;

    /* In "seed" the first and the third layer are of one size. */
    if (c->kind == FSDP_ALL_GATHER && c->unit % 2 == 0) {
        x.unit = 2 - c->unit;
    }
    return mutant_communicate(stream, &x);
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_comm(env)->run = run;
}

static bool shows(const struct run_case *c)
{
    return mutant_plain(c) && strcmp(c->size, "seed") == 0;
}

MUTANT(units_mislabelled) = {
    .name = "units-mislabelled",
    .text = "all-gathers bear the numbers of other units",
    .evidence = "X31: NVIDIA/Megatron-LM#2218",
    .kills = "comm.order",
    .shows = shows,
    .wrap = wrap,
};

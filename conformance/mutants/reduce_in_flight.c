/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce_in_flight.c - in the strict profile an all-reduce is waited for by the
 * optimizer alone, not at its own point.
 */
#include "mutants/wrap_kit.h"

#include <string.h>

static _Thread_local bool in_pass;

static int at(struct fsdp_sharded *s, uint32_t point, uint32_t index)
{
    in_pass = point != FSDP_END && point != FSDP_CANCEL;
    return mutant_real.engine.at(s, point, index);
}

static int wait(void *self, struct fsdp_stream *later,
                struct fsdp_stream *earlier, uint64_t ticket, const char *edge)
{
    return in_pass && strcmp(edge, "reduce->optimizer") == 0
               ? FSDP_OK
               : mutant_real.device->wait(self, later, earlier, ticket, edge);
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    in_pass = false;
    engine->at = at;
    mutant_device(env)->wait = wait;
}

MUTANT(reduce_in_flight) = {
    .name = "reduce-in-flight",
    .text = "in the strict profile all-reduces are in flight across points",
    .evidence = "X33: Megatron-LM#6309",
    .kills = "stream.strict",
    .shows = mutant_hybrid,
    .engine = "impl",
    .wrap = wrap,
};

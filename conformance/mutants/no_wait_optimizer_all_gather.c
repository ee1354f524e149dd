/* SPDX-License-Identifier: Apache-2.0 */
/*
 * no_wait_optimizer_all_gather.c - shards are sent while the optimizer still
 * writes them. What would wait for the same by the way, for the place that is
 * gathered into, is forgotten once, too: the next wait.
 */
#include "mutants/wrap_kit.h"

#include <string.h>

static _Thread_local bool next;

static int wait(void *self, struct fsdp_stream *later,
                struct fsdp_stream *earlier, uint64_t ticket, const char *edge)
{
    bool forgotten = next || strcmp(edge, "optimizer->all-gather") == 0;

    next = strcmp(edge, "optimizer->all-gather") == 0;
    return forgotten
               ? FSDP_OK
               : mutant_real.device->wait(self, later, earlier, ticket, edge);
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    next = false;
    mutant_device(env)->wait = wait;
}

MUTANT(no_wait_optimizer_all_gather) = {
    .name = "no-wait-optimizer-all-gather",
    .text = "shards are sent while the optimizer still writes them",
    .evidence = "X17: DeepSpeed#5216, fairscale#496",
    .kills = "stream.no-race",
    .shows = mutant_plain,
    .engine = "impl",
    .wrap = wrap,
};

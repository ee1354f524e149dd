/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostile_kinds_misnamed.c - unsharded parameters go by the name of
 * something else.
 */
#include "mutants/wrap_kit.h"

static void live(void *self, struct fsdp_stream *stream, uint32_t kind,
                 uint32_t unit, void *p, uint64_t bytes)
{
    mutant_real.device->live(self, stream,
                             kind == FSDP_PARAM_FULL ? FSDP_STAGING : kind,
                             unit, p, bytes);
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_device(env)->live = live;
}

MUTANT(hostile_kinds_misnamed) = {
    .name = "hostile-kinds-misnamed",
    .text = "what is unsharded is declared as staging",
    .evidence = "design: a kind that is misnamed",
    .kills = "memory.peak-unsharded",
    .shows = mutant_plain,
    .wrap = wrap,
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live_beyond_storage.c - a range is declared that is longer than its
 * storage.
 */
#include "mutants/wrap_kit.h"

static void live(void *self, struct fsdp_stream *stream, uint32_t kind,
                 uint32_t unit, void *p, uint64_t bytes)
{
    mutant_real.device->live(self, stream, kind, unit, p, bytes);
    if (kind == FSDP_GRAD_SHARD) {
        mutant_real.device->live(self, stream, FSDP_STAGING, unit,
                                 (char *)p + bytes, 64);
    }
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_device(env)->live = live;
}

MUTANT(live_beyond_storage) = {
    .name = "live-beyond-storage",
    .text = "ranges are said to be live past the end of their "
            "allocation",
    .evidence = "a pool with a wrong size: the recorder must not be led to "
                "read there",
    .kills = "memory.ranges-valid",
    .shows = mutant_plain,
    .wrap = wrap,
};

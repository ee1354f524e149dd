/* SPDX-License-Identifier: Apache-2.0 */
/*
 * storage_rounded.c - every allocation is made larger than it has to be.
 */
#include "mutants/wrap_kit.h"

enum {
    ROUND = 512
};

static int alloc(void *self, uint64_t bytes, void **out)
{
    return mutant_real.device->alloc(self, (bytes + ROUND - 1) / ROUND * ROUND,
                                     out);
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_device(env)->alloc = alloc;
}

MUTANT(storage_rounded) = {
    .name = "storage-rounded",
    .text = "each allocation is rounded up to 512 bytes",
    .evidence = "the block size of PyTorch's caching allocator: what a model "
                "needs is not what the device must have",
    .kills = "memory.storage-total",
    .shows = mutant_plain,
    .wrap = wrap,
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostile_full_copy.c - a full copy of the model is kept where no recorder
 * sees it.
 */
#include "mutants/wrap_kit.h"

#include <string.h>
#include <sys/mman.h>

static _Thread_local void *copy;
static _Thread_local uint64_t bytes;

static int shard(const struct fsdp_env *env, const struct fsdp_model *model,
                 const struct fsdp_units *units,
                 const struct fsdp_options *options, struct fsdp_sharded **out)
{
    bytes = 1;
    for (uint32_t p = 0; p < model->n_parameters; p++) {
        bytes += fsdp_numel(model, p) * sizeof(float);
    }
    copy = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (copy == MAP_FAILED) {
        copy = NULL;
        return FSDP_ERR_NOMEM;
    }
    memset(copy, 1, bytes);
    return mutant_real.engine.shard(env, model, units, options, out);
}

static void destroy(struct fsdp_sharded *s)
{
    if (copy) {
        munmap(copy, bytes);
        copy = NULL;
    }
    mutant_real.engine.destroy(s);
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    copy = NULL;
    engine->shard = shard;
    engine->destroy = destroy;
}

static bool shows(const struct run_case *c)
{
    return strcmp(c->size, "large") == 0 && c->ranks > c->replicas;
}

MUTANT(hostile_full_copy) = {
    .name = "hostile-full-copy",
    .text = "every rank maps and keeps memory as large as the whole "
            "model",
    .evidence = "design: memory that is hidden from the device is seen from "
                "outside",
    .kills = "memory.process-growth",
    .shows = shows,
    .n_cases = 1,
    .wrap = wrap,
};

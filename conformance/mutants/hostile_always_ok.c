/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostile_always_ok.c - every function succeeds and does nothing.
 */
#include "mutants/wrap_kit.h"

static int shard(const struct fsdp_env *env, const struct fsdp_model *model,
                 const struct fsdp_units *units,
                 const struct fsdp_options *options, struct fsdp_sharded **out)
{
    (void)env, (void)model, (void)units, (void)options;
    *out = NULL;
    return FSDP_OK;
}

static int at(struct fsdp_sharded *s, uint32_t point, uint32_t index)
{
    (void)s, (void)point, (void)index;
    return FSDP_OK;
}

static int lend(struct fsdp_sharded *s, uint32_t p, struct fsdp_tensor *out)
{
    (void)s, (void)p;
    *out = (struct fsdp_tensor){0};
    return FSDP_OK;
}

static int set_gradient_sync(struct fsdp_sharded *s, uint32_t on)
{
    (void)s, (void)on;
    return FSDP_OK;
}

static int step(struct fsdp_sharded *s, struct fsdp_step *how)
{
    (void)s, (void)how;
    return FSDP_OK;
}

static int nothing(struct fsdp_sharded *s)
{
    (void)s;
    return FSDP_OK;
}

static int pieces(struct fsdp_sharded *s,
                  void (*visit)(void *context, const struct fsdp_piece *piece),
                  void *context)
{
    (void)s, (void)visit, (void)context;
    return FSDP_OK;
}

static void destroy(struct fsdp_sharded *s)
{
    (void)s;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    engine->shard = shard;
    engine->at = at;
    engine->param = lend;
    engine->grad = lend;
    engine->set_gradient_sync = set_gradient_sync;
    engine->step = step;
    engine->zero_grad = nothing;
    engine->pieces = pieces;
    engine->unshard_all = nothing;
    engine->reshard_all = nothing;
    engine->destroy = destroy;
}

MUTANT(hostile_always_ok) = {
    .name = "hostile-always-ok",
    .text = "nothing is done, and all of it succeeds",
    .evidence = "a stub that is linked by accident",
    .kills = "run.completes",
    .shows = mutant_plain,
    .n_cases = 1,
    .wrap = wrap,
};

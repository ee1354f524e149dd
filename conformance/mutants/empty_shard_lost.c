/* SPDX-License-Identifier: Apache-2.0 */
/*
 * empty_shard_lost.c - a rank that owns nothing of a parameter has no gradient
 * of it, or so it believes.
 */
#include "mutants/wrap_kit.h"

/* +0 in place of parameter p's block in every shard. */
static int lose(struct fsdp_stream *stream, const struct fsdp_collective *c,
                uint32_t p, uint64_t at)
{
    const float nothing = 0.0f;
    float *in = mutant_input(c);

    for (uint64_t s = 0; s < mutant_real.shards; s++) {
        for (uint64_t i = 0; i < mutant_block(p); i++) {
            FSDP_TRY(mutant_put(stream, &nothing, 1, in + s * c->n + at + i));
        }
    }
    return FSDP_OK;
}

static int run(void *self, struct fsdp_stream *stream,
               const struct fsdp_collective *c)
{
    const struct fsdp_model *m = mutant_real.model;
    uint64_t k = mutant_real.rank % mutant_real.shards;
    uint64_t at = 0;

    (void)self;
    for (uint32_t p = 0; c->kind == FSDP_REDUCE_SCATTER && p < m->n_parameters;
         p++) {
        uint32_t u = mutant_real.units->unit_of_module[m->parameter_module[p]];

        if (u == c->unit && k * mutant_block(p) >= fsdp_numel(m, p)) {
            FSDP_TRY(lose(stream, c, p, at));
        }
        at += u == c->unit ? mutant_block(p) : 0;
    }
    return mutant_communicate(stream, c);
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_know(engine);
    mutant_comm(env)->run = run;
}

static bool shows(const struct run_case *c)
{
    return mutant_rows(c) && c->ranks > 3;
}

MUTANT(empty_shard_lost) = {
    .name = "empty-shard-lost",
    .text = "a rank that owns no row of a parameter contributes nothing to "
            "its gradient",
    .evidence =
        "X34: pytorch/pytorch#102821, what belongs to empty shards lost",
    .kills = "reduce.fold",
    .shows = shows,
    .wrap = wrap,
};

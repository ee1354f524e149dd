/* SPDX-License-Identifier: Apache-2.0 */
/*
 * padding_between.c - nobody fills what lies between the blocks of what is
 * packed.
 */
#include "mutants/wrap_kit.h"

/* The padding of parameter p's block in each shard. */
static int soil(struct fsdp_stream *stream, const struct fsdp_collective *c,
                uint32_t p, uint64_t at)
{
    const float garbage = 0.5f;
    uint64_t n = mutant_block(p);
    uint64_t numel = fsdp_numel(mutant_real.model, p);
    float *in = mutant_input(c);

    for (uint64_t s = 0; s < mutant_real.shards; s++) {
        for (uint64_t i = 0; i < n; i++) {
            if (s * n + i >= numel) {
                FSDP_TRY(
                    mutant_put(stream, &garbage, 1, in + s * c->n + at + i));
            }
        }
    }
    return FSDP_OK;
}

static int run(void *self, struct fsdp_stream *stream,
               const struct fsdp_collective *c)
{
    const struct fsdp_model *m = mutant_real.model;
    uint64_t at = 0;

    (void)self;
    for (uint32_t p = 0; c->kind == FSDP_REDUCE_SCATTER && p < m->n_parameters;
         p++) {
        uint32_t u = mutant_real.units->unit_of_module[m->parameter_module[p]];

        if (u == c->unit) {
            FSDP_TRY(soil(stream, c, p, at));
            at += mutant_block(p);
        }
    }
    return mutant_communicate(stream, c);
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_know(engine);
    mutant_comm(env)->run = run;
}

MUTANT(padding_between) = {
    .name = "padding-between",
    .text = "what pads the blocks of a packed gradient is whatever was there "
            "before",
    .evidence = "X46: pytorch/pytorch#83111, DeepSpeed test_zero_allreduce",
    .kills = "comm.padding-zero",
    .shows = mutant_rows,
    .wrap = wrap,
};

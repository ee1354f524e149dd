/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prefetch_across_phases.c - the first unit of a backward is gathered behind
 * the last point of the forward: the engine is told of that backward before
 * the model gets there.
 */
#include "mutants/wrap_kit.h"

static _Thread_local const struct fsdp_sequence *sequence;
static _Thread_local uint32_t told; /* points that the engine knows of */
static _Thread_local uint32_t next; /* the model's */

static bool is_forward(uint32_t point)
{
    return point == FSDP_PRE_FORWARD || point == FSDP_POST_FORWARD;
}

/* The next point of the sequence. */
static int tell(struct fsdp_sharded *s)
{
    const uint32_t i = told++;

    return mutant_real.engine.at(s, sequence->point[i], sequence->module[i]);
}

static bool opens(uint32_t i)
{
    return mutant_real.units->unit_of_module[sequence->module[i]] !=
           FSDP_NO_UNIT;
}

static int at(struct fsdp_sharded *s, uint32_t point, uint32_t index)
{
    if (point == FSDP_BEGIN) {
        sequence = mutant_real.model->sequence[index];
        told = next = 0;
    }
    if (point == FSDP_BEGIN || point == FSDP_END || point == FSDP_CANCEL) {
        return mutant_real.engine.at(s, point, index);
    }
    next++;
    while (told < next) {
        FSDP_TRY(tell(s));
    }
    if (next == told && told < sequence->n && is_forward(point) &&
        !is_forward(sequence->point[told])) {
        while (told + 1 < sequence->n && !opens(told)) {
            FSDP_TRY(tell(s));
        }
        return tell(s);
    }
    return FSDP_OK;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_know(engine);
    engine->at = at;
}

static bool shows(const struct run_case *c)
{
    return c->scenario == CASE_TRAIN && c->prefetch_backward > 0 &&
           c->strategy == CASE_FULL_SHARD && c->ranks > 1 &&
           c->wrap == CASE_WRAP_LAYER;
}

MUTANT(prefetch_across_phases) = {
    .name = "prefetch-across-phases",
    .text = "the forward gathers ahead for the backward",
    .evidence = "X33: Megatron-LM#6153, prefetch in the wrong direction",
    .kills = "prefetch.same-phase",
    .shows = shows,
    .engine = "impl",
    .wrap = wrap,
};

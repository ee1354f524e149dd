/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recompute_mutants.c - engines that take a recomputed forward for something
 * else than a part of the backward that needs it.
 */
#include "mutants/mutant_kit.h"

#include <string.h>

/* A small case that recomputes around its units, and its twin that does not: a
 * run has both, so that they are compared. */
static bool recomputes(const struct run_case *c)
{
    return mutant_three(c) && strcmp(c->size, "odd") == 0;
}

static bool in_recompute(void)
{
    return mutant_now.point == FSDP_PRE_RECOMPUTE;
}

/* ---- The engine is told of a forward ------------------------------------ */

enum {
    MOST_POINTS = 256,
    MOST_SEQUENCES = 4
};
static _Thread_local struct {
    struct fsdp_model model;
    struct fsdp_sequence sequence[MOST_SEQUENCES];
    const struct fsdp_sequence *pointer[MOST_SEQUENCES];
    uint32_t point[MOST_SEQUENCES][MOST_POINTS];
} told;

static void tell(const struct fsdp_model *model)
{
    told.model = *model;
    told.model.sequence = told.pointer;
    for (uint32_t s = 0; s < model->n_sequences && s < MOST_SEQUENCES; s++) {
        told.sequence[s] = *model->sequence[s];
        told.pointer[s] = &told.sequence[s];
    }
}

static uint32_t as_forward(uint32_t point)
{
    return point == FSDP_PRE_RECOMPUTE    ? FSDP_PRE_FORWARD
           : point == FSDP_POST_RECOMPUTE ? FSDP_POST_FORWARD
                                          : point;
}

static int counts_as_forward_shard(const struct fsdp_env *env,
                                   const struct fsdp_model *model,
                                   const struct fsdp_units *units,
                                   const struct fsdp_options *options,
                                   struct fsdp_sharded **out)
{
    tell(model);
    for (uint32_t s = 0; s < model->n_sequences && s < MOST_SEQUENCES; s++) {
        for (uint32_t i = 0; i < model->sequence[s]->n && i < MOST_POINTS;
             i++) {
            told.point[s][i] = as_forward(model->sequence[s]->point[i]);
        }
        told.sequence[s].point = told.point[s];
    }
    return mutant_real.engine.shard(env, &told.model, units, options, out);
}

static int counts_as_forward_at(struct fsdp_sharded *s, uint32_t point,
                                uint32_t index)
{
    return mutant_real.engine.at(s, as_forward(point), index);
}

/* ---- And of a recompute more, behind the backward -------------------------
 */

static _Thread_local uint32_t module[MOST_POINTS];
static _Thread_local uint32_t alone; /* a module; FSDP_NO_UNIT: there is none */

/* The first module that is recomputed and has no backward. */
static uint32_t recomputed_alone(const struct fsdp_sequence *q)
{
    for (uint32_t i = 0; i < q->n; i++) {
        bool is = q->point[i] == FSDP_PRE_RECOMPUTE;

        for (uint32_t j = 0; is && j < q->n; j++) {
            is = q->module[j] != q->module[i] ||
                 q->point[j] != FSDP_PRE_BACKWARD;
        }
        if (is) {
            return q->module[i];
        }
    }
    return FSDP_NO_UNIT;
}

static int window_goes_on_shard(const struct fsdp_env *env,
                                const struct fsdp_model *model,
                                const struct fsdp_units *units,
                                const struct fsdp_options *options,
                                struct fsdp_sharded **out)
{
    struct fsdp_sequence *q = &told.sequence[FSDP_SEQUENCE_TRAIN];

    tell(model);
    alone = q->n + 2 <= MOST_POINTS ? recomputed_alone(q) : FSDP_NO_UNIT;
    if (alone != FSDP_NO_UNIT) {
        memcpy(told.point[0], q->point, q->n * sizeof(*q->point));
        memcpy(module, q->module, q->n * sizeof(*q->module));
        for (uint32_t i = 0; i < 2; i++, q->n++) {
            told.point[0][q->n] =
                i == 0 ? FSDP_PRE_RECOMPUTE : FSDP_POST_RECOMPUTE;
            module[q->n] = alone;
        }
        q->point = told.point[0];
        q->module = module;
    }
    return mutant_real.engine.shard(env, &told.model, units, options, out);
}

static int window_goes_on_at(struct fsdp_sharded *s, uint32_t point,
                             uint32_t index)
{
    if (point == FSDP_END && index == FSDP_SEQUENCE_TRAIN &&
        alone != FSDP_NO_UNIT) {
        FSDP_TRY(mutant_real.engine.at(s, FSDP_PRE_RECOMPUTE, alone));
        FSDP_TRY(mutant_real.engine.at(s, FSDP_POST_RECOMPUTE, alone));
    }
    return mutant_real.engine.at(s, point, index);
}

static bool recomputes_alone(const struct run_case *c)
{
    return case_recomputes_alone(c) && c->layout == FSDP_LAYOUT_FLAT;
}

/* ---- Memory that recompute was to save ---------------------------------- */

enum {
    COPY_BYTES = 1 << 20
};
static _Thread_local void *copy;

static void recompute_forget(void)
{
    copy = NULL;
}

static int lends_gradient(struct fsdp_sharded *s, uint32_t p,
                          struct fsdp_tensor *out)
{
    int status = mutant_real.engine.grad(s, p, out);

    return in_recompute() && p < mutant_real.model->n_parameters &&
                   mutant_real.model->parameter_module[p] == mutant_now.index
               ? FSDP_OK
               : status;
}

static bool misuses(const struct run_case *c)
{
    return c->scenario == CASE_MISUSE && c->recompute != WORKLOAD_KEEPS;
}

static int keeps_a_copy(struct fsdp_sharded *s, uint32_t point, uint32_t index)
{
    const struct fsdp_device *d = mutant_real.device;

    if (point == FSDP_PRE_RECOMPUTE && !copy) {
        FSDP_TRY(d->alloc(d->self, COPY_BYTES, &copy));
        d->live(d->self, NULL, FSDP_ACTIVATION, FSDP_NO_UNIT, copy, COPY_BYTES);
    } else if (point == FSDP_END && copy) {
        d->dead(d->self, NULL, copy);
        d->free(d->self, copy);
        copy = NULL;
    }
    return mutant_real.engine.at(s, point, index);
}

const struct mutant recompute_mutants[] = {
    {.name = "recompute-counts-as-forward",
     .text = "a recomputed forward is a forward of its own: the unit is "
             "resharded behind it, and gathered again for the backward",
     .evidence = "pytorch/pytorch, FSDP1 with reentrant checkpoints: every "
                 "unit is gathered twice in the backward",
     .kills = "comm.all-gather-count recompute.same-collectives",
     .shows = {.in = recomputes, .n_cases = 2},
     .calls = {.shard = counts_as_forward_shard, .at = counts_as_forward_at}},
    {.name = "recompute-ends-no-window",
     .text = "a window whose last point is one of a recompute goes on to the "
             "end of the pass",
     .evidence = "microsoft/DeepSpeed#8130: what is gathered for a recompute "
                 "waits for a backward",
     .kills = "comm.order memory.peak-total",
     .shows = {.in = recomputes_alone},
     .calls = {.shard = window_goes_on_shard, .at = window_goes_on_at}},
    {.name = "recompute-gathers-twice",
     .text = "a unit is gathered twice for its recompute",
     .evidence = "pytorch/pytorch, FSDP1 with a checkpoint over several units",
     .kills = "comm.all-gather-count recompute.same-collectives",
     .shows = {.in = recomputes, .n_cases = 2},
     .fault = {MUTANT_REPEATS_COLLECTIVE, FSDP_ALL_GATHER},
     .when = in_recompute},
    /* It names the model's kind, so that nothing else counts it. */
    {.name = "recompute-keeps-a-copy",
     .text = "from a recompute to the end of the pass a megabyte is live as "
             "activations",
     .evidence = "a copy that recompute was to make unnecessary",
     .kills = "memory.storage-total recompute.activations-fall",
     .shows = {.in = recomputes, .n_cases = 2},
     .calls.at = keeps_a_copy,
     .forget = recompute_forget},
    {.name = "recompute-lends-gradients",
     .text = "a gradient is lent while its module is recomputed",
     .evidence = "no report: a recomputed forward that counts as backward",
     .kills = "recompute.no-gradient",
     .shows = {.in = misuses, .n_cases = 1},
     .calls.grad = lends_gradient},
    {.name = "recompute-stale",
     .text = "a recompute is given the weights of the first step",
     .evidence = "a copy that outlives the step it was gathered in",
     .kills = "grad.local",
     .shows = {.in = recomputes, .n_cases = 2},
     .fault.kind = MUTANT_GATHERS_STALE,
     .when = in_recompute},
    {0},
};

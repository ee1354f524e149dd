/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ahead_mutants.c - engines that run ahead of the model further than they may,
 * less than they should, or in the wrong direction.
 */
#include "mutants/mutant_kit.h"

#include "models/workload.h"

#include <string.h>

static void cancel_gathers_ahead(struct fsdp_options *o)
{
    o->prefetch_backward += o->prefetch_backward > 0 ? 1 : 0;
}

/* A case with enough units still to come where a pass is cancelled. */
static bool cancels_gpt_ahead(const struct run_case *c)
{
    return strcmp(c->workload, "gpt") == 0 && c->scenario == CASE_CANCEL &&
           c->prefetch_backward > 0 && c->strategy == CASE_HYBRID_SHARD;
}

static void prefetch_too_deep(struct fsdp_options *o)
{
    o->prefetch_forward += o->prefetch_forward > 0 ? 2 : 0;
    o->prefetch_backward += o->prefetch_backward > 0 ? 2 : 0;
}

/* A case in which all four layers at once are more than the two largest. */
static bool has_four_layers(const struct run_case *c)
{
    return strcmp(c->workload, "mlp") == 0 && strcmp(c->size, "seed") == 0 &&
           c->scenario == CASE_TRAIN && c->wrap == CASE_WRAP_LAYER &&
           c->strategy == CASE_FULL_SHARD && c->prefetch_forward < 2 &&
           c->prefetch_backward == 1;
}

static bool gathers_ahead(const struct run_case *c)
{
    return c->scenario == CASE_TRAIN && c->prefetch_forward > 0 &&
           c->data == WORKLOAD_NATURAL && c->ranks > c->replicas;
}

/* The first unit of a backward is gathered behind the last point of the
 * forward: the engine is told of that backward before the model gets there. */
static _Thread_local const struct fsdp_sequence *sequence;
static _Thread_local uint32_t told; /* points that the engine knows of */
static _Thread_local uint32_t next; /* the model's */

static bool is_forward(uint32_t point)
{
    return point == FSDP_PRE_FORWARD || point == FSDP_POST_FORWARD;
}

static int tell_next_point(struct fsdp_sharded *s)
{
    const uint32_t i = told++;

    return mutant_real.engine.at(s, sequence->point[i], sequence->module[i]);
}

static bool opens_unit(uint32_t i)
{
    return mutant_real.units->unit_of_module[sequence->module[i]] !=
           FSDP_NO_UNIT;
}

static int prefetch_across_phases(struct fsdp_sharded *s, uint32_t point,
                                  uint32_t index)
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
        FSDP_TRY(tell_next_point(s));
    }
    if (next == told && told < sequence->n && is_forward(point) &&
        !is_forward(sequence->point[told])) {
        while (told + 1 < sequence->n && !opens_unit(told)) {
            FSDP_TRY(tell_next_point(s));
        }
        return tell_next_point(s);
    }
    return FSDP_OK;
}

static bool gathers_ahead_in_backward(const struct run_case *c)
{
    return c->scenario == CASE_TRAIN && c->prefetch_backward > 0 &&
           c->strategy == CASE_FULL_SHARD && c->ranks > 1 &&
           c->wrap == CASE_WRAP_LAYER;
}

const struct mutant ahead_mutants[] = {
    /* A pass that is cancelled had gathered further ahead than it may. */
    {.name = "cancel-gathers-ahead",
     .text = "before CANCEL one unit more is gathered than the options say",
     .evidence = "a limit in flight that is not kept",
     .kills = "comm.all-gather-count memory.prefetch-bound",
     .shows = {.in = cancels_gpt_ahead, .n_cases = 1, .engine = "impl"},
     .options = cancel_gathers_ahead},
    {.name = "prefetch-across-phases",
     .text = "the forward gathers ahead for the backward",
     .evidence = "NVIDIA/Megatron-LM#6153, prefetch in the wrong direction",
     .kills = "prefetch.same-phase",
     .shows = {.in = gathers_ahead_in_backward, .engine = "impl"},
     .calls.at = prefetch_across_phases},
    {.name = "prefetch-backward-late",
     .text = "in a backward nothing is gathered ahead",
     .evidence =
         "NVIDIA/Megatron-LM#6153: prefetch at another time than agreed",
     .kills = "prefetch.backward-ahead",
     .shows = {.in = mutant_ahead, .engine = "impl"},
     .fault = {MUTANT_SETS, MUTANT_OPTION(prefetch_backward), 0}},
    {.name = "prefetch-forward-late",
     .text = "in a forward nothing is gathered ahead",
     .evidence =
         "NVIDIA/Megatron-LM#6153: prefetch at another time than agreed",
     .kills = "prefetch.forward-ahead",
     .shows = {.in = mutant_ahead, .engine = "impl"},
     .fault = {MUTANT_SETS, MUTANT_OPTION(prefetch_forward), 0}},
    /* The gathers ahead of the first step serve for the next ones, too. */
    {.name = "prefetch-stale",
     .text = "with prefetch, weights of before the step are computed with",
     .evidence = "NVIDIA/Megatron-LM: Megatron-FSDP v2 tests that the next "
                 "forward uses updated weights",
     .kills = "gather.sees-updated-weights",
     .shows = {.in = gathers_ahead, .engine = "impl"},
     .fault.kind = MUTANT_GATHERS_STALE},
    {.name = "prefetch-too-deep",
     .text = "two more units are gathered ahead than the options say",
     .evidence = "a limit in flight that is not kept",
     .kills = "memory.prefetch-bound",
     .shows = {.in = has_four_layers, .n_cases = 1, .engine = "impl"},
     .options = prefetch_too_deep},
    {.name = "reduce-awaited",
     .text = "every reduction is waited for where it is given out",
     .evidence =
         "NVIDIA/Megatron-LM#6153: prefetch at another time than agreed",
     .kills = "prefetch.reduce-overlaps",
     .shows = {.in = mutant_ahead, .engine = "impl"},
     .fault = {MUTANT_SETS, MUTANT_OPTION(reduces_in_flight), 0}},
    {0},
};

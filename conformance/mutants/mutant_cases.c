/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mutant_cases.c - the cases that are small enough to show a mutant.
 */
#include "mutants/mutant_kit.h"

#include "models/workload.h"

#include <string.h>

bool mutant_mlp(const struct run_case *c)
{
    return strcmp(c->workload, "mlp") == 0 && c->data == WORKLOAD_NATURAL &&
           c->frozen == WORKLOAD_TRAINS_ALL &&
           (strcmp(c->size, "seed") == 0 || strcmp(c->size, "odd") == 0);
}

bool mutant_misuse(const struct run_case *c)
{
    return mutant_mlp(c) && c->scenario == CASE_MISUSE;
}

bool mutant_cancels(const struct run_case *c)
{
    return mutant_mlp(c) && c->scenario == CASE_CANCEL;
}

bool mutant_evaluates(const struct run_case *c)
{
    return mutant_mlp(c) && c->scenario == CASE_EVAL && c->ranks > c->replicas;
}

bool mutant_clips(const struct run_case *c)
{
    return strcmp(c->workload, "mlp") == 0 && c->scenario == CASE_CLIP &&
           c->ranks > 1;
}

bool mutant_natural(const struct run_case *c)
{
    return (strcmp(c->workload, "mlp") == 0 ||
            strcmp(c->workload, "linear") == 0) &&
           strcmp(c->size, "large") != 0 && c->data == WORKLOAD_NATURAL &&
           c->ranks > 2 && c->layout == FSDP_LAYOUT_FLAT &&
           (c->scenario == CASE_TRAIN || c->scenario == CASE_EVAL ||
            c->scenario == CASE_SUMMON || c->scenario == CASE_AGAIN);
}

bool mutant_accumulates(const struct run_case *c)
{
    return mutant_natural(c) && c->microbatches > 1 && !c->sync[0] &&
           (c->microbatches == 2 || !c->sync[1]);
}

bool mutant_train(const struct run_case *c)
{
    return mutant_mlp(c) && c->scenario == CASE_TRAIN && c->microbatches == 1 &&
           c->wrap == CASE_WRAP_LAYER && c->fold == FSDP_FOLD_RANK &&
           c->layout == FSDP_LAYOUT_FLAT && c->divide_factor == 0.0f;
}

bool mutant_adamw(const struct run_case *c)
{
    return mutant_train(c) && c->optimizer == FSDP_OPTIMIZER_ADAMW;
}

bool mutant_alone(const struct run_case *c)
{
    return mutant_train(c) && c->ranks == 1;
}

bool mutant_plain(const struct run_case *c)
{
    return mutant_train(c) && c->strategy == CASE_FULL_SHARD &&
           (c->ranks == 3 || c->ranks == 4) &&
           c->optimizer == FSDP_OPTIMIZER_SGD;
}

bool mutant_three(const struct run_case *c)
{
    return mutant_plain(c) && c->ranks == 3;
}

bool mutant_rows(const struct run_case *c)
{
    return mutant_mlp(c) && strcmp(c->size, "odd") == 0 &&
           c->layout == FSDP_LAYOUT_PER_PARAMETER &&
           c->strategy == CASE_FULL_SHARD && c->wrap == CASE_WRAP_WHOLE &&
           c->scenario == CASE_TRAIN;
}

bool mutant_few_rows(const struct run_case *c)
{
    return mutant_rows(c) && c->ranks <= 4;
}

bool mutant_resume(const struct run_case *c)
{
    return mutant_mlp(c) && c->scenario == CASE_RESUME &&
           c->optimizer == FSDP_OPTIMIZER_ADAMW && c->ranks > 1;
}

bool mutant_bad_options(const struct run_case *c)
{
    return c->scenario == CASE_OPTIONS;
}

bool mutant_hybrid(const struct run_case *c)
{
    return mutant_train(c) && c->ranks > c->replicas && c->replicas > 1;
}

bool mutant_ahead(const struct run_case *c)
{
    return c->scenario == CASE_TRAIN && c->prefetch_forward > 0 &&
           c->reduces_in_flight > 0;
}

bool mutant_hybrid_ahead(const struct run_case *c)
{
    return mutant_ahead(c) && c->ranks > c->replicas && c->replicas > 1;
}

bool mutant_weighed(const struct run_case *c)
{
    return case_is_weighed(c) && c->steps < 20 && c->ranks > c->replicas;
}

bool mutant_any_mlp(const struct run_case *c)
{
    return strcmp(c->workload, "mlp") == 0;
}

bool mutant_in_turn(const struct run_case *c)
{
    return mutant_any_mlp(c) && c->prefetch_forward == 0;
}

bool mutant_sharded(const struct run_case *c)
{
    return mutant_in_turn(c) && c->strategy == CASE_FULL_SHARD;
}

bool mutant_plays(const struct run_case *c, const char *script)
{
    return strcmp(c->script, script) == 0;
}

bool mutant_plays_mlp(const struct run_case *c, const char *script)
{
    return mutant_plays(c, script) && mutant_any_mlp(c);
}

bool mutant_plays_in_turn(const struct run_case *c, const char *script)
{
    return mutant_plays(c, script) && mutant_in_turn(c);
}

bool mutant_plays_sharded(const struct run_case *c, const char *script)
{
    return mutant_plays(c, script) && mutant_sharded(c);
}

bool mutant_is_in(const struct mutant *m, const struct run_case *c)
{
    return (!m->shows.script || mutant_plays(c, m->shows.script)) &&
           (!m->shows.in || m->shows.in(c));
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reuse_forgotten.c - a module that is called twice in a pass keeps the
 * gradient of one call.
 */
#include "mutants/wrap_kit.h"

#include "cases/case_graph.h"

#include <stdlib.h>
#include <string.h>

enum {
    MOST = 64,
    ELEMENTS = 512
};

static _Thread_local struct fsdp_tensor lent[MOST]; /* in this pass */
static _Thread_local float scratch[MOST][ELEMENTS];

static int at(struct fsdp_sharded *s, uint32_t point, uint32_t index)
{
    if (point == FSDP_BEGIN) {
        memset(lent, 0, sizeof lent);
    }
    return mutant_real.engine.at(s, point, index);
}

static int grad(struct fsdp_sharded *s, uint32_t p, struct fsdp_tensor *out)
{
    if (p < MOST && lent[p].data) {
        *out = lent[p];
        out->data = scratch[p];
        return FSDP_OK;
    }
    FSDP_TRY(mutant_real.engine.grad(s, p, out));
    if (p < MOST) {
        lent[p] = *out;
    }
    return FSDP_OK;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    engine->at = at;
    engine->grad = grad;
}

static bool shows(const struct run_case *c)
{
    return case_is_graph(c) && c->scenario == CASE_TRAIN &&
           case_graph_has(c, GRAPH_REUSED);
}

MUTANT(reuse_forgotten) = {
    .name = "reuse-forgotten",
    .text = "of a module that is called twice one gradient is lost",
    .evidence = "X24: NVIDIA/Megatron-LM#7186, within one pass",
    .kills = "memory.peak-total reduce.fold",
    .shows = shows,
    .n_cases = 1,
    .wrap = wrap,
};

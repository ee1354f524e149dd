/* SPDX-License-Identifier: Apache-2.0 */
/*
 * missing_not_zeroed.c - a parameter that got no gradient contributes what
 * stood in its place.
 */
#include "mutants/wrap_kit.h"

#include "cases/case_graph.h"

static _Thread_local bool ends; /* of a module's backward */

static int at(struct fsdp_sharded *s, uint32_t point, uint32_t index)
{
    int status;

    ends = point == FSDP_POST_BACKWARD;
    status = mutant_real.engine.at(s, point, index);
    ends = false;
    return status;
}

/* Padding is zeroed when a backward begins. */
static int run(void *self, struct fsdp_stream *stream, const struct fsdp_op *op)
{
    struct fsdp_op wrong = *op;

    (void)self;
    if (op->kind == FSDP_OP_FILL && ends) {
        wrong.f[0] = 0.5f;
    }
    return mutant_run(stream, &wrong);
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    ends = false;
    engine->at = at;
    mutant_device(env)->run = run;
}

static bool shows(const struct run_case *c)
{
    return case_is_graph(c) && c->scenario == CASE_TRAIN &&
           case_graph_has(c, GRAPH_IDLE);
}

MUTANT(missing_not_zeroed) = {
    .name = "missing-not-zeroed",
    .text = "a parameter without a gradient contributes what stood there",
    .evidence = "X24: a buffer that is reused without being cleared",
    .kills = "reduce.fold",
    .shows = shows,
    .n_cases = 1,
    .wrap = wrap,
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * states_swapped.c - the two moments of Adam are told in the wrong order.
 */
#include "mutants/wrap_kit.h"

static void tell(const struct mutant_visit *v, const struct fsdp_piece *piece)
{
    struct fsdp_piece x = *piece;

    x.state[0] = piece->state[1];
    x.state[1] = piece->state[0];
    v->visit(v->context, &x);
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_pieces(engine, tell);
}

static bool shows(const struct run_case *c)
{
    return mutant_train(c) && c->optimizer == FSDP_OPTIMIZER_ADAMW;
}

MUTANT(states_swapped) = {
    .name = "states-swapped",
    .text = "pieces report m as v and v as m",
    .evidence = "X36: NVIDIA/physicsnemo#1597",
    .kills = "step.adamw",
    .shows = shows,
    .wrap = wrap,
};

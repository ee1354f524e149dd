/* SPDX-License-Identifier: Apache-2.0 */
/*
 * padding_as_rows.c - what fills the last rank's block is taken for rows.
 */
#include "mutants/wrap_kit.h"

static void tell(const struct mutant_visit *v, const struct fsdp_piece *piece)
{
    struct fsdp_piece x = *piece;

    x.n = mutant_block(x.parameter);
    v->visit(v->context, &x);
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_know(engine);
    mutant_pieces(engine, tell);
}

MUTANT(padding_as_rows) = {
    .name = "padding-as-rows",
    .text = "a rank with fewer rows than others shows its padding as rows",
    .evidence = "X46: pytorch/pytorch#83111, writes to padding",
    .kills = "layout.no-padding",
    .shows = mutant_rows,
    .wrap = wrap,
};

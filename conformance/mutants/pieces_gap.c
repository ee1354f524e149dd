/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pieces_gap.c - an element is owned by no rank.
 */
#include "mutants/wrap_kit.h"

static void tell(const struct mutant_visit *v, const struct fsdp_piece *piece)
{
    struct fsdp_piece x = *piece;

    x.n -= mutant_real.rank == 0;
    v->visit(v->context, &x);
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_pieces(engine, tell);
}

MUTANT(pieces_gap) = {
    .name = "pieces-gap",
    .text = "a piece that ends within its parameter is one element too "
            "short",
    .evidence = "X34: pytorch/pytorch#102821",
    .kills = "layout.covers-once",
    .shows = mutant_plain,
    .wrap = wrap,
};

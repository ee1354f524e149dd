/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pieces_overlap.c - an element is owned by two ranks.
 */
#include "mutants/wrap_kit.h"

static void tell(const struct mutant_visit *v, const struct fsdp_piece *piece)
{
    struct fsdp_piece x = *piece;

    if (piece->first > 0) {
        x.first--;
        x.n = 1;
        v->visit(v->context, &x);
    }
    v->visit(v->context, piece);
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_pieces(engine, tell);
}

MUTANT(pieces_overlap) = {
    .name = "pieces-overlap",
    .text = "a piece is preceded by the last element of the rank before",
    .evidence = "X35: shards that tile a parameter and hold other elements",
    .kills = "layout.covers-once",
    .shows = mutant_plain,
    .wrap = wrap,
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pieces_shifted.c - a rank says of its shard that it lies one element
 * later.
 */
#include "mutants/wrap_kit.h"

static void tell(const struct mutant_visit *v, const struct fsdp_piece *piece)
{
    struct fsdp_piece x = *piece;

    x.first++;
    v->visit(v->context, &x);
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_pieces(engine, tell);
}

MUTANT(pieces_shifted) = {
    .name = "pieces-shifted",
    .text = "pieces report `first` one too large, so that one ends past "
            "its parameter",
    .evidence = "X35: shards that tile a parameter and hold other elements",
    .kills = "layout.no-padding",
    .shows = mutant_plain,
    .wrap = wrap,
};

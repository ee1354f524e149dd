/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pieces_wild.c - pieces are of no parameter, and lie nowhere.
 */
#include "mutants/wrap_kit.h"

static void tell(const struct mutant_visit *v, const struct fsdp_piece *piece)
{
    struct fsdp_piece x = *piece;

    x.parameter += 1000;
    x.first += UINT64_C(1) << 50;
    v->visit(v->context, &x);
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_pieces(engine, tell);
}

MUTANT(pieces_wild) = {
    .name = "pieces-wild",
    .text = "pieces have numbers that index nothing",
    .evidence = "a record is hostile: its numbers must not be trusted",
    .kills = "layout.no-padding",
    .shows = mutant_plain,
    .n_cases = 1,
    .wrap = wrap,
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pieces_in_pass.c - pieces are told in the middle of a pass.
 */
#include "mutants/wrap_kit.h"

static int pieces(struct fsdp_sharded *s,
                  void (*visit)(void *context, const struct fsdp_piece *piece),
                  void *context)
{
    int status = mutant_real.engine.pieces(s, visit, context);

    return status == FSDP_ERR_INVALID ? FSDP_OK : status;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    engine->pieces = pieces;
}

MUTANT(pieces_in_pass) = {
    .name = "pieces-in-pass",
    .text = "pieces succeeds between BEGIN and END",
    .evidence = "a checkpoint that is taken while weights change",
    .kills = "error.pieces-in-pass",
    .shows = mutant_misuse,
    .wrap = wrap,
};

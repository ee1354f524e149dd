/* SPDX-License-Identifier: Apache-2.0 */
/*
 * no_sync_pieces.c - what pieces shows is read while streams still write it.
 */
#include "mutants/wrap_kit.h"

static _Thread_local bool in_pieces;

static int sync(void *self, struct fsdp_stream *stream)
{
    return in_pieces ? FSDP_OK : mutant_real.device->sync(self, stream);
}

static int pieces(struct fsdp_sharded *s,
                  void (*visit)(void *context, const struct fsdp_piece *piece),
                  void *context)
{
    int status;

    in_pieces = true;
    status = mutant_real.engine.pieces(s, visit, context);
    in_pieces = false;
    return status;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    in_pieces = false;
    engine->pieces = pieces;
    mutant_device(env)->sync = sync;
}

MUTANT(no_sync_pieces) = {
    .name = "no-sync-pieces",
    .text = "pieces are shown while streams still write them",
    .evidence = "X39: pytorch#198020: copied before it was done",
    .kills = "stream.no-race",
    .shows = mutant_plain,
    .engine = "impl",
    .wrap = wrap,
};

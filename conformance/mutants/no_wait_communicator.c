/* SPDX-License-Identifier: Apache-2.0 */
/*
 * no_wait_communicator.c - a communicator that knows no streams is called
 * before the stream has come that far.
 */
#include "mutants/wrap_kit.h"

static int run(void *self, struct fsdp_stream *stream,
               const struct fsdp_collective *c)
{
    (void)self;
    (void)stream;
    return mutant_communicate(NULL, c);
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_comm(env)->takes_streams = 0;
    mutant_comm(env)->run = run;
    mutant_forget_wait(env, "stream->communicator");
}

MUTANT(no_wait_communicator) = {
    .name = "no-wait-communicator",
    .text = "a communicator without streams reads before a stream has written",
    .evidence = "X16: pytorch#180666",
    .kills = "stream.no-race",
    .shows = mutant_plain,
    .engine = "impl",
    .wrap = wrap,
};

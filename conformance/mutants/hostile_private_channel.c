/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostile_private_channel.c - ranks talk past the communicator.
 */
#include "mutants/wrap_kit.h"

#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static _Thread_local int channel;

static socklen_t address(uint32_t rank, struct sockaddr_un *a)
{
    *a = (struct sockaddr_un){.sun_family = AF_UNIX};
    /* An abstract name: nothing is left behind in a file system. */
    snprintf(a->sun_path + 1, sizeof a->sun_path - 1, "fsdp-cts-%ld-%u",
             (long)getppid(), rank);
    return sizeof *a;
}

static int shard(const struct fsdp_env *env, const struct fsdp_model *model,
                 const struct fsdp_units *units,
                 const struct fsdp_options *options, struct fsdp_sharded **out)
{
    struct sockaddr_un a;
    socklen_t n = address(env->rank, &a);

    channel = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (channel < 0) {
        return FSDP_ERR_IO;
    }
    /* Who has the name already is another run: then there is no listener,
     * and the channel is as private as before. */
    (void)bind(channel, (struct sockaddr *)&a, n);
    return mutant_real.engine.shard(env, model, units, options, out);
}

static int step(struct fsdp_sharded *s, struct fsdp_step *how)
{
    struct sockaddr_un a;
    socklen_t n = address(0, &a);

    (void)sendto(channel, how->lr, sizeof *how->lr, MSG_DONTWAIT,
                 (struct sockaddr *)&a, n);
    return mutant_real.engine.step(s, how);
}

static void destroy(struct fsdp_sharded *s)
{
    if (channel >= 0) {
        close(channel);
    }
    channel = -1;
    mutant_real.engine.destroy(s);
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    channel = -1;
    engine->shard = shard;
    engine->step = step;
    engine->destroy = destroy;
}

MUTANT(hostile_private_channel) = {
    .name = "hostile-private-channel",
    .text = "every rank opens a socket of its own and sends rank 0 what "
            "it likes",
    .evidence = "design: a channel that is hidden from the communicator is "
                "seen from outside",
    .kills = "comm.no-private-channel",
    .shows = mutant_plain,
    .n_cases = 1,
    .wrap = wrap,
};

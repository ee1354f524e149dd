/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm_mutants.c - engines that exchange too much, or in another way or order
 * than they should, though the resulting numbers may be right.
 */
#include "mutants/mutant_kit.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int broadcast_extra(struct fsdp_sharded *s, struct fsdp_step *how)
{
    float x = how->lr[0];
    struct fsdp_collective c = {.size = sizeof(c),
                                .kind = FSDP_BROADCAST,
                                .dim = FSDP_DIM_WORLD,
                                .dtype = FSDP_DTYPE_F32,
                                .unit = FSDP_NO_UNIT,
                                .n = 1,
                                .in = &x,
                                .out = &x};

    FSDP_TRY(mutant_real.engine.step(s, how));
    return mutant_communicate(NULL, &c);
}

/* Exchanges values out of band, without a collective. */
static int exchange_in_step(struct fsdp_sharded *s, struct fsdp_step *how)
{
    float all[64];

    if (mutant_real.world <= 64) {
        FSDP_TRY(mutant_real.env->exchange(mutant_real.env->exchange_self,
                                           how->lr, sizeof(*all), all));
    }
    return mutant_real.engine.step(s, how);
}

static void gather_as_integers(struct fsdp_collective *x)
{
    if (x->kind == FSDP_ALL_GATHER) {
        x->dtype = FSDP_DTYPE_I32;
    }
}

static bool after_two_steps(void)
{
    return mutant_now.steps > 1;
}

static _Thread_local int channel;

static void comm_forget(void)
{
    channel = -1;
}

static socklen_t channel_address(uint32_t rank, struct sockaddr_un *a)
{
    *a = (struct sockaddr_un){.sun_family = AF_UNIX};
    /* An abstract name: nothing is left behind in a file system. */
    snprintf(a->sun_path + 1, sizeof(a->sun_path) - 1, "fsdp-cts-%ld-%u",
             (long)getppid(), rank);
    return sizeof(*a);
}

static int hostile_private_channel(const struct fsdp_env *env,
                                   const struct fsdp_model *model,
                                   const struct fsdp_units *units,
                                   const struct fsdp_options *options,
                                   struct fsdp_sharded **out)
{
    struct sockaddr_un a;
    socklen_t n = channel_address(env->rank, &a);

    channel = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (channel < 0) {
        return FSDP_ERR_IO;
    }
    /* If another run has the name already, nothing listens here, but the
     * channel is as private as before. */
    (void)bind(channel, (struct sockaddr *)&a, n);
    return mutant_real.engine.shard(env, model, units, options, out);
}

static int hostile_private_channel_step(struct fsdp_sharded *s,
                                        struct fsdp_step *how)
{
    struct sockaddr_un a;
    socklen_t n = channel_address(0, &a);

    (void)sendto(channel, how->lr, sizeof(*how->lr), MSG_DONTWAIT,
                 (struct sockaddr *)&a, n);
    return mutant_real.engine.step(s, how);
}

static void hostile_private_channel_destroy(struct fsdp_sharded *s)
{
    if (channel >= 0) {
        close(channel);
    }
    channel = -1;
    mutant_real.engine.destroy(s);
}

enum {
    MOST = 256 /* elements of a shard */
};

/* Reverses the order of a unit's parameters in a shard, or restores it
 * (`back`). */
static void turn(uint32_t unit, const float *from, float *to, bool back)
{
    const struct fsdp_model *m = mutant_real.model;
    uint64_t at = 0;

    for (uint32_t p = 0; p < m->n_parameters; p++) {
        uint64_t behind = 0;
        uint64_t n = mutant_block(p);

        if (mutant_unit(p) != unit) {
            continue;
        }
        for (uint32_t q = p + 1; q < m->n_parameters; q++) {
            behind += mutant_unit(q) == unit ? mutant_block(q) : 0;
        }
        for (uint64_t i = 0; i < n; i++) {
            to[back ? at + i : behind + i] = from[back ? behind + i : at + i];
        }
        at += n;
    }
}

static int turn_shards(struct fsdp_stream *stream, uint32_t unit, uint64_t n,
                       uint64_t shards, float *p, bool back)
{
    float x[MOST];
    float y[MOST];

    for (uint64_t s = 0; s < shards; s++) {
        FSDP_TRY(mutant_get(stream, p + s * n, n, x));
        turn(unit, x, y, back);
        FSDP_TRY(mutant_put(stream, y, n, p + s * n));
    }
    return FSDP_OK;
}

static int packed_backwards(void *self, struct fsdp_stream *stream,
                            const struct fsdp_collective *c)
{
    const bool gathers = c->kind == FSDP_ALL_GATHER;
    const uint64_t shards = mutant_real.shards;
    float *in = mutant_input(c);

    (void)self;
    if (c->dim != FSDP_DIM_SHARD || c->n > MOST) {
        return mutant_communicate(stream, c);
    }
    FSDP_TRY(
        turn_shards(stream, c->unit, c->n, gathers ? 1 : shards, in, false));
    FSDP_TRY(mutant_communicate(stream, c));
    FSDP_TRY(
        turn_shards(stream, c->unit, c->n, gathers ? 1 : shards, in, true));
    return turn_shards(stream, c->unit, c->n, gathers ? shards : 1, c->out,
                       true);
}

/* Writes numbers into the padding of parameter p's block in each shard. */
static int soil(struct fsdp_stream *stream, const struct fsdp_collective *c,
                uint32_t p, uint64_t at)
{
    const float garbage = 0.5f;
    uint64_t n = mutant_block(p);
    uint64_t numel = fsdp_numel(mutant_real.model, p);
    float *in = mutant_input(c);

    for (uint64_t s = 0; s < mutant_real.shards; s++) {
        for (uint64_t i = 0; i < n; i++) {
            if (s * n + i >= numel) {
                FSDP_TRY(
                    mutant_put(stream, &garbage, 1, in + s * c->n + at + i));
            }
        }
    }
    return FSDP_OK;
}

static int padding_between(void *self, struct fsdp_stream *stream,
                           const struct fsdp_collective *c)
{
    const struct fsdp_model *m = mutant_real.model;
    uint64_t at = 0;

    (void)self;
    for (uint32_t p = 0; c->kind == FSDP_REDUCE_SCATTER && p < m->n_parameters;
         p++) {
        if (mutant_unit(p) == c->unit) {
            FSDP_TRY(soil(stream, c, p, at));
            at += mutant_block(p);
        }
    }
    return mutant_communicate(stream, c);
}

static int padding_garbage(void *self, struct fsdp_stream *stream,
                           const struct fsdp_op *op)
{
    (void)self;
    if (op->kind == FSDP_OP_FILL && op->dim[0] < mutant_real.shards) {
        return FSDP_OK;
    }
    return mutant_run(stream, op);
}

/* In "seed" the first and the third layer are of one size. */
static void units_mislabelled(struct fsdp_collective *x)
{
    if (x->kind == FSDP_ALL_GATHER && x->unit % 2 == 0) {
        x->unit = 2 - x->unit;
    }
}

static bool is_plain_seed(const struct run_case *c)
{
    return mutant_plain(c) && strcmp(c->size, "seed") == 0;
}

const struct mutant comm_mutants[] = {
    /* A world of one rank communicates all the same. */
    {.name = "alone-communicates",
     .text = "a rank that is alone takes part in a collective",
     .evidence = "pytorch/pytorch#144045",
     .kills = "comm.silent-at-one",
     .shows = {.in = mutant_alone},
     .fault = {MUTANT_MEETS_AT_END, .of = FSDP_ALL_GATHER}},
    /* Ranks wait for each other at the end of each pass. */
    {.name = "barrier-in-pass",
     .text = "a barrier at END",
     .evidence = "a step needs no barrier",
     .kills = "comm.nothing-else",
     .shows = {.in = mutant_plain},
     .fault = {MUTANT_MEETS_AT_END, .of = FSDP_BARRIER}},
    /* Every step ends with a broadcast that is not needed. */
    {.name = "broadcast-extra",
     .text = "a step broadcasts one number from rank 0",
     .evidence = "a step needs no other collectives",
     .kills = "comm.nothing-else",
     .shows = {.in = mutant_plain},
     .calls.step = broadcast_extra},
    {.name = "exchange-in-step",
     .text = "each step tells all ranks something through exchange",
     .evidence = "design: what goes out of band is in no sequence",
     .kills = "comm.nothing-exchanged",
     .shows = {.in = mutant_plain},
     .calls.step = exchange_in_step},
    /* Parameters travel as integers: the same bytes by another name. */
    {.name = "gather-as-integers",
     .text = "all-gathers are declared as int32",
     .evidence = "a dtype on the wire that is not the declared one",
     .kills = "comm.dtype",
     .shows = {.in = mutant_plain},
     .collective = gather_as_integers},
    {.name = "gather-twice",
     .text = "each all-gather is issued a second time",
     .evidence = "NVIDIA/Megatron-LM#6153",
     .kills = "comm.all-gather-count",
     .shows = {.in = mutant_plain},
     .fault = {MUTANT_REPEATS_COLLECTIVE, .of = FSDP_ALL_GATHER}},
    /* Steps after the first gather more than the first. */
    {.name = "gathers-again-later",
     .text = "from the third step on, every unit is gathered twice",
     .evidence = "NVIDIA/Megatron-LM#6309",
     .kills = "comm.all-gather-count",
     .shows = {.in = mutant_plain},
     .fault = {MUTANT_REPEATS_COLLECTIVE, .of = FSDP_ALL_GATHER},
     .when = after_two_steps},
    /* Ranks talk past the communicator. */
    {.name = "hostile-private-channel",
     .text =
         "every rank opens a socket of its own and sends rank 0 what it likes",
     .evidence = "design: a channel that is hidden from the communicator is "
                 "seen from outside",
     .kills = "comm.no-private-channel",
     .shows = {.in = mutant_plain, .n_cases = 1},
     .calls.shard = hostile_private_channel,
     .calls.step = hostile_private_channel_step,
     .calls.destroy = hostile_private_channel_destroy,
     .forget = comm_forget},
    /* Only the order on the wire is another one. */
    {.name = "packed-backwards",
     .text = "a unit's parameters are packed, and unpacked, last one first",
     .evidence = "ranks of two versions that pack in other orders exchange "
                 "parameters of equal size",
     .kills = "comm.packing-order",
     .shows = {.in = mutant_rows},
     .comm.run = packed_backwards},
    /* The gaps between the blocks of a packed gradient are not filled. */
    {.name = "padding-between",
     .text = "what pads the blocks of a packed gradient is whatever was there "
             "before",
     .evidence = "pytorch/pytorch#83111, deepspeedai/DeepSpeed: "
                 "tests/unit/runtime/zero/test_zero_allreduce_fetch_params.py",
     .kills = "comm.padding-zero",
     .shows = {.in = mutant_rows},
     .comm.run = padding_between},
    /* The tail of a flat gradient is not filled. */
    {.name = "padding-garbage",
     .text = "what pads a gradient is whatever was there before",
     .evidence = "pytorch/pytorch#83111, deepspeedai/DeepSpeed: "
                 "tests/unit/runtime/zero/test_zero_allreduce_fetch_params.py",
     .kills = "comm.padding-zero",
     .shows = {.in = mutant_three},
     .device.run = padding_garbage},
    /* Collectives of units are issued in an order that is not that of their
     * windows. */
    {.name = "units-mislabelled",
     .text = "all-gathers bear the numbers of other units",
     .evidence = "NVIDIA/Megatron-LM#2218",
     .kills = "comm.order",
     .shows = {.in = is_plain_seed},
     .collective = units_mislabelled},
    {0},
};

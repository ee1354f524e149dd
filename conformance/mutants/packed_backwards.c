/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packed_backwards.c - the last parameter of a unit goes first, on the wire
 * alone.
 */
#include "mutants/wrap_kit.h"

enum {
    MOST = 256 /* elements of a shard */
};

/* A shard in the model's order, from or to the other order. */
static void turn(uint32_t unit, const float *from, float *to, bool back)
{
    const struct fsdp_model *m = mutant_real.model;
    uint64_t at = 0;

    for (uint32_t p = 0; p < m->n_parameters; p++) {
        uint64_t behind = 0;
        uint64_t n = mutant_block(p);

        if (mutant_real.units->unit_of_module[m->parameter_module[p]] != unit) {
            continue;
        }
        for (uint32_t q = p + 1; q < m->n_parameters; q++) {
            if (mutant_real.units->unit_of_module[m->parameter_module[q]] ==
                unit) {
                behind += mutant_block(q);
            }
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

static int run(void *self, struct fsdp_stream *stream,
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

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_know(engine);
    mutant_comm(env)->run = run;
}

MUTANT(packed_backwards) = {
    .name = "packed-backwards",
    .text = "a unit's parameters are packed, and unpacked, last one first",
    .evidence = "ranks of two versions that pack in other orders exchange "
                "parameters of equal size",
    .kills = "comm.packing-order",
    .shows = mutant_rows,
    .wrap = wrap,
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce_mutants.c - engines whose ranks do not get the average of all ranks'
 * gradients, exact in every bit.
 */
#include "mutants/mutant_kit.h"

#include <fsdp/arith/bits.h>

static _Thread_local bool bit_changed;

static void reduce_forget(void)
{
    bit_changed = false;
}

/* With no_average: divides each input instead of the sum, so that every input
 * is rounded once more. */
static float divide_before_reduce(float x)
{
    return x * (1.0f / (float)mutant_real.world);
}

static void divide_by_shard_degree(struct fsdp_op *x)
{
    if (x->kind == FSDP_OP_SCALE) {
        x->f[0] = 1.0f / (float)mutant_real.shards;
    }
}

static float divide_by_world(float x)
{
    return x / (float)mutant_real.world;
}

/* Divides instead of multiplying by the inverse: half an ulp apart. */
static int quotient_not_product(void *self, struct fsdp_stream *stream,
                                const struct fsdp_op *op)
{
    (void)self;
    return op->kind == FSDP_OP_SCALE
               ? mutant_each(stream, op->out[0].p, op->dim[0], divide_by_world)
               : mutant_run(stream, op);
}

/* Writes +0 in place of parameter p's block in every shard. */
static int lose_block(struct fsdp_stream *stream,
                      const struct fsdp_collective *c, uint32_t p, uint64_t at)
{
    const float nothing = 0.0f;
    float *in = mutant_input(c);

    for (uint64_t s = 0; s < mutant_real.shards; s++) {
        for (uint64_t i = 0; i < mutant_block(p); i++) {
            FSDP_TRY(mutant_put(stream, &nothing, 1, in + s * c->n + at + i));
        }
    }
    return FSDP_OK;
}

static int empty_shard_lost(void *self, struct fsdp_stream *stream,
                            const struct fsdp_collective *c)
{
    const struct fsdp_model *m = mutant_real.model;
    uint64_t k = mutant_real.rank % mutant_real.shards;
    uint64_t at = 0;

    (void)self;
    for (uint32_t p = 0; c->kind == FSDP_REDUCE_SCATTER && p < m->n_parameters;
         p++) {
        uint32_t u = mutant_unit(p);

        if (u == c->unit && k * mutant_block(p) >= fsdp_numel(m, p)) {
            FSDP_TRY(lose_block(stream, c, p, at));
        }
        at += u == c->unit ? mutant_block(p) : 0;
    }
    return mutant_communicate(stream, c);
}

static bool has_empty_shards(const struct run_case *c)
{
    return mutant_rows(c) && c->ranks > 3;
}

static int hostile_one_rank_wrong(void *self, struct fsdp_stream *stream,
                                  const struct fsdp_op *op)
{
    float x;

    (void)self;
    FSDP_TRY(mutant_run(stream, op));
    if (op->kind != FSDP_OP_SCALE || op->dim[0] == 0 || bit_changed ||
        mutant_real.rank + 1 != mutant_real.world) {
        return FSDP_OK;
    }
    bit_changed = true;
    FSDP_TRY(mutant_get(stream, op->out[0].p, 1, &x));
    x = fsdp_f32_from_bits(fsdp_f32_bits(x) ^ 1u);
    return mutant_put(stream, &x, 1, op->out[0].p);
}

static void owner_last(struct fsdp_collective *x)
{
    if (x->kind == FSDP_REDUCE_SCATTER || x->kind == FSDP_ALL_REDUCE) {
        x->fold = FSDP_FOLD_RING;
    }
}

static int reduce_missing(void *self, struct fsdp_stream *stream,
                          const struct fsdp_collective *c)
{
    const struct fsdp_device *d = mutant_real.device;
    uint64_t bytes = c->n * sizeof(float);
    uint32_t coordinate = mutant_real.rank % mutant_real.shards;

    (void)self;
    FSDP_TRY(mutant_communicate(stream, c));
    if (c->kind != FSDP_REDUCE_SCATTER) {
        return FSDP_OK;
    }
    return d->copy(d->self, stream, c->out,
                   (const char *)c->in + coordinate * bytes, bytes);
}

static void replica_reduce_on_shard_dim(struct fsdp_collective *x)
{
    if (x->kind == FSDP_ALL_REDUCE) {
        x->dim = FSDP_DIM_SHARD;
    }
}

static void second_life(struct fsdp_op *x)
{
    if (x->kind == FSDP_OP_SCALE && mutant_now.lives > 1) {
        x->f[0] = 1.0f;
    }
}

static bool shards_again(const struct run_case *c)
{
    return mutant_natural(c) && c->scenario == CASE_AGAIN &&
           c->microbatches == 1;
}

const struct mutant reduce_mutants[] = {
    /* Gradients are rounded to bf16 before they are folded. */
    {.name = "bf16-reduce",
     .text = "gradients lose 16 bits on the way to the reduce-scatter",
     .evidence = "pytorch/pytorch#106395",
     .kills = "reduce.fold",
     .shows = {.in = mutant_plain},
     .contributed = mutant_as_bf16},
    {.name = "divide-before-reduce",
     .text = "gradients are multiplied by 1 / divide factor before the fold",
     .evidence = "facebookresearch/fairscale#565",
     .kills = "reduce.fold",
     .shows = {.in = mutant_three},
     .fault = {MUTANT_LEAVES_OUT_OP, .of = FSDP_OP_SCALE},
     .contributed = divide_before_reduce},
    {.name = "divide-by-shard-degree",
     .text = "the divisor is the extent of the shard dimension, not the world",
     .evidence = "pytorch/torchtitan#1551, pytorch/pytorch#160285",
     .kills = "reduce.scale",
     .shows = {.in = mutant_hybrid},
     .op = divide_by_shard_degree},
    /* As by an engine and by a communicator that averages. */
    {.name = "divide-twice",
     .text = "the reduced gradient is multiplied by 1 / divide factor twice",
     .evidence = "meta-pytorch/torchtune#2172",
     .kills = "reduce.fold reduce.scale",
     .shows = {.in = mutant_plain},
     .fault = {MUTANT_REPEATS_OP, .of = FSDP_OP_SCALE}},
    /* A rank that owns nothing of a parameter has no gradient of it, or so it
     * believes. */
    {.name = "empty-shard-lost",
     .text = "a rank that owns no row of a parameter contributes nothing to "
             "its gradient",
     .evidence = "pytorch/pytorch#102821, what belongs to empty shards lost",
     .kills = "reduce.fold",
     .shows = {.in = has_empty_shards},
     .comm.run = empty_shard_lost},
    {.name = "hostile-one-rank-wrong",
     .text =
         "one bit of one element of one rank's first reduced gradient is wrong",
     .evidence = "pytorch/pytorch#180665",
     .kills = "reduce.fold",
     .shows = {.in = mutant_plain},
     .device.run = hostile_one_rank_wrong,
     .forget = reduce_forget},
    /* Gradients are added up over ranks and never divided. */
    {.name = "no-average",
     .text = "the reduced gradient is not multiplied by 1 / divide factor",
     .evidence = "meta-pytorch/torchtune#2172",
     .kills = "reduce.scale",
     .shows = {.in = mutant_plain},
     .fault = {MUTANT_LEAVES_OUT_OP, .of = FSDP_OP_SCALE}},
    /* In the order of a ring the owner of an element comes last. */
    {.name = "owner-last",
     .text = "folds in ring order where rank order is declared",
     .evidence = "NCCL ring reduce-scatter against a fold by rank",
     .kills = "comm.fold-declared reduce.fold",
     .shows = {.in = mutant_plain},
     .collective = owner_last},
    {.name = "quotient-not-product",
     .text = "g / K is computed where g * (1 / K) is specified",
     .evidence = "the reason for which numerics are pinned to the bit",
     .kills = "reduce.fold",
     .shows = {.in = mutant_three},
     .device.run = quotient_not_product},
    /* Every rank keeps its own gradient: the reduce-scatter is made, and its
     * result is not used. */
    {.name = "reduce-missing",
     .text = "the gradient shard is cut from this rank's own gradient",
     .evidence = "a test that gives all ranks the same batch does not see it",
     .kills = "reduce.fold",
     .shows = {.in = mutant_plain},
     .comm.run = reduce_missing},
    /* Gradients stay within a group of shards. */
    {.name = "replica-reduce-missing",
     .text = "no all-reduce over replicas",
     .evidence = "NVIDIA-NeMo/Automodel#3135",
     .kills = "comm.all-reduce-count reduce.replicas-equal",
     .shows = {.in = mutant_hybrid},
     .fault = {MUTANT_LEAVES_OUT_COLLECTIVE, .of = FSDP_ALL_REDUCE}},
    /* The all-reduce runs over the other dimension of the mesh. */
    {.name = "replica-reduce-on-shard-dim",
     .text = "the all-reduce adds up unlike shards of one replica",
     .evidence = "NVIDIA/Megatron-LM#5956",
     .kills = "comm.dims reduce.replicas-equal",
     .shows = {.in = mutant_hybrid},
     .collective = replica_reduce_on_shard_dim},
    /* A destroyed model leaves something behind. */
    {.name = "second-life",
     .text = "the second model of a process is not averaged",
     .evidence = "deepspeedai/DeepSpeed#3582",
     .kills = "num.deterministic reduce.scale",
     .shows = {.in = shards_again},
     .op = second_life},
    {0},
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mixed_mutants.c - engines that round at another moment than mixed precision
 * says, or to another dtype, or not at all. Each is shown by the cases whose
 * policy it breaks.
 */
#include "mutants/mutant_kit.h"

#include "models/workload.h"

#include <fsdp/arith/bits.h>
#include <fsdp/arith/cast.h>
#include <string.h>

static bool is_plain(const struct run_case *c, uint32_t precision)
{
    return c->precision == precision && c->scenario == CASE_TRAIN &&
           c->data == WORKLOAD_NATURAL && c->frozen == WORKLOAD_TRAINS_ALL;
}

static bool gathers_bf16(const struct run_case *c)
{
    return is_plain(c, CASE_BF16) && c->ranks > c->replicas;
}

static bool reduces_bf16(const struct run_case *c)
{
    return is_plain(c, CASE_BF16_REDUCE) && c->ranks == 3;
}

static bool accumulates_bf16(const struct run_case *c)
{
    return reduces_bf16(c) && c->microbatches > 2;
}

static bool accumulates_f32(const struct run_case *c)
{
    return is_plain(c, CASE_BF16) && c->microbatches > 2;
}

static bool sums_f32(const struct run_case *c)
{
    return is_plain(c, CASE_BF16_SUM) && c->ranks / c->replicas > 2;
}

/* Only exact16 has ties, and sums that are lost, on purpose. */
static bool gathers_ties(const struct run_case *c)
{
    return c->data == WORKLOAD_EXACT16 && c->precision == CASE_BF16 &&
           c->scenario == CASE_TRAIN && c->ranks > c->replicas;
}

static bool loses_sums(const struct run_case *c)
{
    return c->data == WORKLOAD_EXACT16 && c->precision == CASE_BF16_REDUCE &&
           c->microbatches > 2 && c->sync[0] == 0;
}

static bool is_alone(const struct run_case *c)
{
    return is_plain(c, CASE_BF16_REDUCE) && c->ranks == 1;
}

static bool has_units(const struct run_case *c)
{
    return is_plain(c, CASE_UNITS);
}

static bool adds_up_shards(const struct run_case *c)
{
    return is_plain(c, CASE_REDUCE_BF16) && c->sync[0] == 1 &&
           c->microbatches > 1;
}

static bool has_padding(const struct run_case *c)
{
    return is_plain(c, CASE_BF16_REDUCE) && c->ranks == 7;
}

/* ---- Casts ---------------------------------------------------------------*/

enum {
    MOST = 4096 /* elements of a unit of these cases, at most */
};

static bool casts_to_bf16(const struct fsdp_op *op)
{
    return op->kind == FSDP_OP_CAST && op->aux[0] == FSDP_DTYPE_F32 &&
           op->aux[1] == FSDP_DTYPE_BF16 && op->dim[0] <= MOST;
}

static int put_narrow(struct fsdp_stream *stream, const struct fsdp_op *op,
                      const uint16_t *narrow)
{
    const struct fsdp_device *d = mutant_real.device;

    FSDP_TRY(d->copy(d->self, stream, op->out[0].p, narrow,
                     op->dim[0] * sizeof(*narrow)));
    return d->sync(d->self, stream);
}

/* Casts with another rounding: the dropped bits and `of` are added, and a carry
 * rounds up. So it rounds up never, always (the parameters of exact ties are
 * few), or from a half on. */
static int cast_by(void *self, struct fsdp_stream *stream,
                   const struct fsdp_op *op)
{
    const uint32_t add = (uint32_t)mutant_of();
    float wide[MOST];
    uint16_t narrow[MOST];

    (void)self;
    if (!casts_to_bf16(op)) {
        return mutant_run(stream, op);
    }
    FSDP_TRY(mutant_get(stream, op->in[0].p, op->dim[0], wide));
    for (uint64_t i = 0; i < op->dim[0]; i++) {
        narrow[i] = (uint16_t)((fsdp_f32_bits(wide[i]) + add) >> 16);
    }
    return put_narrow(stream, op, narrow);
}

/* The first unit's parameters, as the first step cast them. */
static _Thread_local void *kept_room; /* uint16_t[MOST] */

static int cast_stale(void *self, struct fsdp_stream *stream,
                      const struct fsdp_op *op)
{
    uint16_t *const kept = mutant_room(&kept_room, MOST * sizeof(*kept));

    (void)self;
    FSDP_TRY(mutant_run(stream, op));
    if (!kept || !casts_to_bf16(op) || op->unit != 0) {
        return FSDP_OK;
    }
    if (mutant_now.steps == 0) {
        const struct fsdp_device *d = mutant_real.device;

        FSDP_TRY(d->copy(d->self, stream, kept, op->out[0].p,
                         op->dim[0] * sizeof(*kept)));
        return d->sync(d->self, stream);
    }
    return put_narrow(stream, op, kept);
}

static bool plays_huge(const struct run_case *c)
{
    return c->precision == CASE_DEFAULTS && strcmp(c->script, "huge-tiny") == 0;
}

/* Casts numbers that are too large for float16 to its largest number. */
static int cast_saturating(void *self, struct fsdp_stream *stream,
                           const struct fsdp_op *op)
{
    const struct fsdp_device *d = mutant_real.device;
    const uint16_t infinity = 0x7c00;
    uint16_t narrow[MOST];
    bool any = false;

    (void)self;
    FSDP_TRY(mutant_run(stream, op));
    if (op->kind != FSDP_OP_CAST || op->aux[1] != FSDP_DTYPE_F16 ||
        op->dim[0] > MOST) {
        return FSDP_OK;
    }
    FSDP_TRY(d->copy(d->self, stream, narrow, op->out[0].p,
                     op->dim[0] * sizeof(*narrow)));
    FSDP_TRY(d->sync(d->self, stream));
    for (uint64_t i = 0; i < op->dim[0]; i++) {
        if ((narrow[i] & 0x7fff) == infinity) {
            narrow[i]--;
            any = true;
        }
    }
    return any ? put_narrow(stream, op, narrow) : FSDP_OK;
}

/* ---- The reduction -------------------------------------------------------*/

static float rounded(float x)
{
    return fsdp_round(FSDP_DTYPE_BF16, x);
}

/* Scales each rank's part, in bf16, in place of the fold. */
static int scale_before_fold(void *self, struct fsdp_stream *stream,
                             const struct fsdp_collective *c)
{
    const struct fsdp_device *d = mutant_real.device;
    const uint64_t n = c->n * mutant_real.shards;
    uint16_t narrow[MOST];

    (void)self;
    if (c->kind == FSDP_REDUCE_SCATTER && c->dtype == FSDP_DTYPE_BF16 &&
        n <= MOST) {
        FSDP_TRY(d->copy(d->self, stream, narrow, c->in, n * sizeof(*narrow)));
        FSDP_TRY(d->sync(d->self, stream));
        for (uint64_t i = 0; i < n; i++) {
            fsdp_store(FSDP_DTYPE_BF16, narrow, i,
                       fsdp_load(FSDP_DTYPE_BF16, narrow, i) *
                           (1.0f / (float)mutant_real.world));
        }
        FSDP_TRY(d->copy(d->self, stream, mutant_input(c), narrow,
                         n * sizeof(*narrow)));
        FSDP_TRY(d->sync(d->self, stream));
    }
    return mutant_communicate(stream, c);
}

static int shard_gradient_bf16(void *self, struct fsdp_stream *stream,
                               const struct fsdp_op *op)
{
    (void)self;
    FSDP_TRY(mutant_run(stream, op));
    return op->kind == FSDP_OP_ADD && op->aux[1] == FSDP_DTYPE_BF16
               ? mutant_each(stream, op->out[0].p, op->dim[0], rounded)
               : FSDP_OK;
}

static void padding_not_zero(struct fsdp_op *op)
{
    if (op->kind == FSDP_OP_FILL && op->aux[0] == FSDP_DTYPE_BF16) {
        op->f[0] = 1.0f;
    }
}

/* ---- The master ----------------------------------------------------------*/

static void round_value(const struct fsdp_piece *piece)
{
    /* NOLINTNEXTLINE(performance-no-int-to-ptr) */
    (void)mutant_each(NULL, (void *)(uintptr_t)piece->value, piece->n, rounded);
}

static int master_from_copy(struct fsdp_sharded *s, struct fsdp_step *step)
{
    FSDP_TRY(mutant_real.engine.step(s, step));
    return mutant_each_piece(s, round_value);
}

/* ---- Units ---------------------------------------------------------------*/

static int unit_dtypes_ignored(struct mutant_told *t,
                               const struct fsdp_env *env)
{
    (void)env;
    t->units.param_dtype = t->units.grad_dtype = t->units.accumulate_dtype =
        NULL;
    t->units.reduce_dtype = t->units.sum_dtype = NULL;
    return FSDP_OK;
}

static bool has_defaults(const struct run_case *c)
{
    return is_plain(c, CASE_DEFAULTS);
}

static void reduces_in_param_dtype(struct fsdp_options *o)
{
    if (o->reduce_dtype == FSDP_DTYPE_NONE) {
        o->reduce_dtype = o->param_dtype;
    }
}

/* Rounds the sum of one replica before replicas reduce it. */
static int rounded_between(void *self, struct fsdp_stream *stream,
                           const struct fsdp_collective *c)
{
    float *const x = c->kind == FSDP_ALL_REDUCE ? c->out : NULL;
    float value;

    (void)self;
    for (uint64_t i = 0; x && i < c->n; i++) {
        FSDP_TRY(mutant_get(stream, x + i, 1, &value));
        value = fsdp_round(FSDP_DTYPE_BF16, value);
        FSDP_TRY(mutant_put(stream, &value, 1, x + i));
    }
    return mutant_communicate(stream, c);
}

static bool meets_in_f32(const struct run_case *c)
{
    return is_plain(c, CASE_BF16) && c->replicas > 1 && c->replicas < c->ranks;
}

const struct mutant mixed_mutants[] = {
    {.name = "mixed-accumulate-in-param-dtype",
     .text = "microbatches add up in 16 bits where float32 was asked for",
     .evidence = "sums of the dtype that gradients have",
     .kills = "memory.peak-gradients mixed.accumulate",
     .shows = {.in = accumulates_f32, .mixed = true},
     .fault = {MUTANT_SETS, MUTANT_OPTION(accumulate_dtype), FSDP_DTYPE_BF16}},
    {.name = "mixed-accumulate-late",
     .text = "microbatches add up in float32 where bf16 was asked for",
     .evidence = "a sum that is rounded once is another sum",
     .kills = "memory.peak-gradients mixed.accumulate",
     .shows = {.in = accumulates_bf16, .mixed = true},
     .fault = {MUTANT_SETS, MUTANT_OPTION(accumulate_dtype), FSDP_DTYPE_F32}},
    {.name = "mixed-accumulate-nothing-lost",
     .text = "3 + 1536 - 1536 is 3 where sums of bf16 were asked for: 0",
     .evidence = "exact data on which no sum over ranks rounds",
     .kills = "memory.peak-gradients mixed.accumulate",
     .shows = {.in = loses_sums, .mixed = true},
     .fault = {MUTANT_SETS, MUTANT_OPTION(accumulate_dtype), FSDP_DTYPE_F32}},
    {.name = "mixed-alone-computes-f32",
     .text = "a rank that is alone computes in float32",
     .evidence = "a path for one rank that skips the cast with the gather",
     .kills = "memory.peak-parameters mixed.alone-casts",
     .shows = {.in = is_alone, .mixed = true},
     .fault = {MUTANT_SETS, MUTANT_OPTION(param_dtype), FSDP_DTYPE_F32}},
    {.name = "mixed-cast-half-away",
     .text = "ties are rounded away from zero",
     .evidence = "a cast that adds a half before it shifts",
     .kills = "mixed.cast-of-shard",
     .shows = {.in = gathers_ties, .mixed = true},
     .fault = {.of = 0x8000},
     .device.run = cast_by},
    {.name = "mixed-cast-saturating",
     .text = "what is too large for float16 is cast to its largest number",
     .evidence = "Transformer Engine: saturating casts",
     .kills = "mixed.overflow",
     .shows = {.in = plays_huge, .mixed = true},
     .device = {.run = cast_saturating}},
    {.name = "mixed-cast-stale",
     .text = "a unit's cast is that of the first step for good",
     .evidence = "a copy in 16 bits that the optimizer does not renew",
     .kills = "mixed.fresh-cast",
     .shows = {.in = gathers_bf16, .mixed = true},
     .device = {.run = cast_stale}},
    {.name = "mixed-cast-truncating",
     .text = "the shard is cut to 16 bits, not rounded",
     .evidence = "a cast that shifts",
     .kills = "mixed.cast-of-shard",
     .shows = {.in = gathers_bf16, .mixed = true},
     .device.run = cast_by},
    {.name = "mixed-cast-upwards",
     .text = "the shard is rounded away from zero",
     .evidence = "a cast that adds before it shifts",
     .kills = "mixed.cast-of-shard",
     .shows = {.in = gathers_bf16, .mixed = true},
     .fault = {.of = 0xffff},
     .device.run = cast_by},
    {.name = "mixed-gather-f32",
     .text = "parameters are gathered in float32 where bf16 was asked for",
     .evidence = "a cast that stands behind the gather",
     .kills = "memory.peak-unsharded mixed.gather-dtype",
     .shows = {.in = gathers_bf16, .mixed = true},
     .fault = {MUTANT_SETS, MUTANT_OPTION(param_dtype), FSDP_DTYPE_F32}},
    {.name = "mixed-gradient-f32",
     .text = "a gradient is lent in float32 where bf16 was asked for",
     .evidence = "a gradient that keeps what autograd would have rounded",
     .kills = "memory.peak-total mixed.gradient-dtype",
     .shows = {.in = gathers_bf16, .mixed = true},
     .fault = {MUTANT_SETS, MUTANT_OPTION(grad_dtype), FSDP_DTYPE_F32}},
    {.name = "mixed-master-from-copy",
     .text = "weights rest in 16 bits between steps",
     .evidence = "a copy that is stepped in place of the master",
     .kills = "mixed.master-kept",
     .shows = {.in = gathers_bf16, .mixed = true},
     .calls = {.step = master_from_copy}},
    {.name = "mixed-padding-not-zero",
     .text = "padding of 16 bits is 1 on the wire",
     .evidence = "a fill that knows float32",
     .kills = "mixed.padding-zero",
     .shows = {.in = has_padding, .mixed = true},
     .op = padding_not_zero},
    {.name = "mixed-reduce-defaults-to-param",
     .text = "where no dtype of the reduction is said it is that of parameters",
     .evidence = "pytorch/pytorch#186998",
     .kills = "memory.peak-gradients mixed.reduce-dtype",
     .shows = {.in = has_defaults, .mixed = true},
     .options = reduces_in_param_dtype},
    {.name = "mixed-reduce-in-param-dtype",
     .text = "gradients are reduced in bf16 where float32 was asked for",
     .evidence = "pytorch/pytorch#106395",
     .kills = "mixed.reduce-dtype",
     .shows = {.in = gathers_bf16, .mixed = true},
     .fault = {MUTANT_SETS, MUTANT_OPTION(reduce_dtype), FSDP_DTYPE_BF16}},
    {.name = "mixed-reduce-rounded",
     .text = "gradients are rounded to bf16 and sent as float32",
     .evidence = "a cast that is undone before the wire",
     .kills = "mixed.reduce-dtype",
     .shows = {.in = accumulates_f32, .mixed = true},
     .contributed = mutant_as_bf16},
    {.name = "mixed-scale-before-fold",
     .text = "each rank scales its gradients, in bf16, before they meet",
     .evidence = "facebookresearch/fairscale#565",
     .kills = "mixed.scale",
     .shows = {.in = reduces_bf16, .mixed = true},
     .fault = {MUTANT_LEAVES_OUT_OP, .of = FSDP_OP_SCALE},
     .comm = {.run = scale_before_fold}},
    {.name = "mixed-shard-gradient-bf16",
     .text = "reduced gradients add up in bf16",
     .evidence = "a gradient shard of the wire's dtype",
     .kills = "mixed.shard-gradient",
     .shows = {.in = adds_up_shards, .mixed = true},
     .device = {.run = shard_gradient_bf16}},
    {.name = "mixed-rounded-between",
     .text = "what goes into the all-reduce over replicas is rounded to the "
             "parameter dtype",
     .evidence = "pytorch/pytorch#190626: a HYBRID_SHARD's second reduction",
     .kills = "mixed.sum",
     .shows = {.in = meets_in_f32, .mixed = true},
     .comm.run = rounded_between},
    {.name = "mixed-sum-each",
     .text = "each sum is rounded to bf16 where float32 was asked for",
     .evidence = "the sum of most libraries, and not that of all",
     .kills = "mixed.sum",
     .shows = {.in = sums_f32, .mixed = true},
     .fault = {MUTANT_SETS, MUTANT_OPTION(sum_dtype), FSDP_DTYPE_NONE}},
    {.name = "mixed-sum-once",
     .text = "sums are float32 where each was to be rounded to bf16",
     .evidence = "a communicator that sums more widely than it says",
     .kills = "mixed.sum",
     .shows = {.in = reduces_bf16, .mixed = true},
     .fault = {MUTANT_SETS, MUTANT_OPTION(sum_dtype), FSDP_DTYPE_F32}},
    {.name = "mixed-unit-dtypes-ignored",
     .text = "every unit has the dtypes of the options",
     .evidence = "a policy that is read where the model is wrapped, once",
     .kills = "memory.peak-gradients memory.peak-unsharded mixed.units",
     .shows = {.in = has_units, .mixed = true},
     .told = unit_dtypes_ignored},
    {0},
};

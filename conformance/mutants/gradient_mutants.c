/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gradient_mutants.c - engines that lose gradients of this rank, or add them
 * up in a wrong way, before ranks exchange anything.
 */
#include "mutants/mutant_kit.h"

#include "cases/case_graph.h"
#include "models/workload.h"

#include <string.h>

enum {
    LENT = 64, /* parameters that reuse_forgotten follows */
    ELEMENTS = 512
};

static _Thread_local void *first_gradient;
static _Thread_local const void *staging; /* the last that became live */
static _Thread_local struct fsdp_tensor lent[LENT]; /* in this pass */
static _Thread_local void *scratch;                 /* float[LENT][ELEMENTS] */

static void gradient_forget(void)
{
    first_gradient = NULL;
    staging = NULL;
}

static int accumulate_bf16(void *self, struct fsdp_stream *stream,
                           const struct fsdp_op *op)
{
    (void)self;
    FSDP_TRY(mutant_run(stream, op));
    return op->kind == FSDP_OP_ADD
               ? mutant_each(stream, op->out[0].p, op->dim[0], mutant_as_bf16)
               : FSDP_OK;
}

static int accumulate_overwrites(void *self, struct fsdp_stream *stream,
                                 const struct fsdp_op *op)
{
    const struct fsdp_device *d = mutant_real.device;

    (void)self;
    if (op->kind != FSDP_OP_ADD) {
        return mutant_run(stream, op);
    }
    return d->copy(d->self, stream, op->out[0].p, op->in[1].p,
                   op->out[0].bytes);
}

static bool reduces_once_early(const struct run_case *c)
{
    return mutant_natural(c) && c->microbatches == 3 && c->sync[0] &&
           !c->sync[1];
}

static void gradient_lent_twice_live(void *self, struct fsdp_stream *stream,
                                     uint32_t kind, uint32_t unit, void *p,
                                     uint64_t bytes)
{
    if (kind == FSDP_GRAD_FULL) {
        first_gradient = p;
    }
    mutant_real.device->live(self, stream, kind, unit, p, bytes);
}

static int gradient_lent_twice(struct fsdp_sharded *s, uint32_t p,
                               struct fsdp_tensor *out)
{
    FSDP_TRY(mutant_real.engine.grad(s, p, out));
    out->data = first_gradient;
    return FSDP_OK;
}

static bool is_one_unit(const struct run_case *c)
{
    return strcmp(c->workload, "mlp") == 0 && c->scenario == CASE_TRAIN &&
           c->microbatches == 1 && c->wrap == CASE_WRAP_WHOLE &&
           c->strategy == CASE_FULL_SHARD && c->data == WORKLOAD_NATURAL;
}

/* Fills with 0.5 where a module's backward ends, but not where one begins:
 * those fills zero padding. */
static void missing_not_zeroed(struct fsdp_op *x)
{
    if (x->kind == FSDP_OP_FILL && mutant_now.point == FSDP_POST_BACKWARD) {
        x->f[0] = 0.5f;
    }
}

static bool has_idle_parameters(const struct run_case *c)
{
    return case_is_graph(c) && c->scenario == CASE_TRAIN &&
           case_graph_has(c, GRAPH_IDLE);
}

static int no_sync_ignored(struct fsdp_sharded *s, uint32_t on)
{
    (void)on;
    return mutant_real.engine.set_gradient_sync(s, 1);
}

static bool accumulates_without_replicas(const struct run_case *c)
{
    return mutant_accumulates(c) && c->replicas == 1;
}

static int reuse_forgotten_at(struct fsdp_sharded *s, uint32_t point,
                              uint32_t index)
{
    if (point == FSDP_BEGIN) {
        memset(lent, 0, sizeof(lent));
    }
    return mutant_real.engine.at(s, point, index);
}

static int reuse_forgotten(struct fsdp_sharded *s, uint32_t p,
                           struct fsdp_tensor *out)
{
    float(*own)[ELEMENTS] = mutant_room(&scratch, LENT * sizeof(*own));

    if (own && p < LENT && lent[p].data) {
        *out = lent[p];
        out->data = own[p];
        return FSDP_OK;
    }
    FSDP_TRY(mutant_real.engine.grad(s, p, out));
    if (p < LENT) {
        lent[p] = *out;
    }
    return FSDP_OK;
}

static bool reuses_modules(const struct run_case *c)
{
    return case_is_graph(c) && c->scenario == CASE_TRAIN &&
           case_graph_has(c, GRAPH_REUSED);
}

static void scale_the_sum_live(void *self, struct fsdp_stream *stream,
                               uint32_t kind, uint32_t unit, void *p,
                               uint64_t bytes)
{
    if (kind == FSDP_STAGING) {
        staging = p;
    } else if (p == staging) {
        staging = NULL;
    }
    mutant_real.device->live(self, stream, kind, unit, p, bytes);
}

/* With several reductions a step, the sum so far is divided again each time
 * instead of what is added. */
static int scale_the_sum(void *self, struct fsdp_stream *stream,
                         const struct fsdp_op *op)
{
    static _Thread_local float factor;
    static _Thread_local const void *unscaled;
    struct fsdp_op scale = *op;

    (void)self;
    if (op->kind == FSDP_OP_SCALE && op->in[0].p == staging) {
        unscaled = staging;
        factor = op->f[0];
        return FSDP_OK;
    }
    FSDP_TRY(mutant_run(stream, op));
    if (op->kind != FSDP_OP_ADD || op->in[1].p != unscaled || !unscaled) {
        return FSDP_OK;
    }
    unscaled = NULL;
    scale.kind = FSDP_OP_SCALE;
    scale.f[0] = factor;
    scale.n_in = 1;
    return mutant_run(stream, &scale);
}

static bool reduces_twice(const struct run_case *c)
{
    return mutant_natural(c) && c->microbatches == 2 && c->sync[0];
}

static int zero_grad_noop(struct fsdp_sharded *s)
{
    (void)s;
    return FSDP_OK;
}

/* The data sampler, which asks the env for its rank, is told rank 0. */
static int batch_of_first(const struct fsdp_env *env,
                          const struct fsdp_model *model,
                          const struct fsdp_units *units,
                          const struct fsdp_options *options,
                          struct fsdp_sharded **out)
{
    FSDP_TRY(mutant_real.engine.shard(env, model, units, options, out));
    mutant_real.env->rank = 0;
    return FSDP_OK;
}

const struct mutant gradient_mutants[] = {
    /* The sum over microbatches is kept in bf16. */
    {.name = "accumulate-bf16",
     .text = "the sum of gradients is rounded to bf16 after each addition",
     .evidence = "pytorch/pytorch#106395",
     .kills = "accumulate.no-sync",
     .shows = {.in = mutant_accumulates},
     .device.run = accumulate_bf16},
    /* Gradients of later microbatches are left out. */
    {.name = "accumulate-first-only",
     .text = "only the first microbatch of a step counts",
     .evidence = "InfiniTensor/InfiniTrain#213",
     .kills = "accumulate.no-sync",
     .shows = {.in = mutant_accumulates},
     .fault = {MUTANT_LEAVES_OUT_OP, .of = FSDP_OP_ADD}},
    /* A later gradient takes the place of the sum so far. */
    {.name = "accumulate-overwrites",
     .text = "only the last microbatch of a step counts",
     .evidence = "NVIDIA/Megatron-LM#7186",
     .kills = "accumulate.no-sync",
     .shows = {.in = mutant_accumulates},
     .device.run = accumulate_overwrites},
    {.name = "accumulate-twice",
     .text = "later gradients of a step count double",
     .evidence = "pytorch/pytorch#90546",
     .kills = "accumulate.interleaved",
     .shows = {.in = reduces_once_early},
     .fault = {MUTANT_REPEATS_OP, .of = FSDP_OP_ADD}},
    /* A sampler that does not know its rank. */
    {.name = "batch-of-first",
     .text = "every rank trains on the samples of rank 0",
     .evidence = "design: a data sampler that nobody told its rank",
     .kills = "grad.distinct",
     .shows = {.in = mutant_three},
     .calls.shard = batch_of_first},
    /* Two gradients of a unit are lent the same storage. */
    {.name = "gradient-lent-twice",
     .text = "the storage of a gradient is that of the unit's first parameter",
     .evidence = "design: storage that two values share",
     .kills = "reduce.fold",
     .shows = {.in = is_one_unit},
     .device.live = gradient_lent_twice_live,
     .calls.grad = gradient_lent_twice,
     .forget = gradient_forget},
    {.name = "missing-not-zeroed",
     .text = "a parameter without a gradient contributes what stood there",
     .evidence = "a buffer that is reused without being cleared",
     .kills = "reduce.fold",
     .shows = {.in = has_idle_parameters, .n_cases = 1},
     .op = missing_not_zeroed},
    /* Every microbatch is reduced, asked for or not. */
    {.name = "no-sync-ignored",
     .text = "set_gradient_sync(0) has no effect",
     .evidence = "NVIDIA/cosmos-framework#161",
     .kills = "accumulate.no-sync comm.reduce-scatter-count "
              "memory.peak-gradients memory.peak-total",
     .shows = {.in = accumulates_without_replicas},
     .calls.set_gradient_sync = no_sync_ignored},
    /* A module that is called twice in a pass keeps the gradient of one call.
     */
    {.name = "reuse-forgotten",
     .text = "of a module that is called twice one gradient is lost",
     .evidence = "NVIDIA/Megatron-LM#7186, within one pass",
     .kills = "memory.peak-total reduce.fold",
     .shows = {.in = reuses_modules, .n_cases = 1},
     .calls.at = reuse_forgotten_at,
     .calls.grad = reuse_forgotten},
    {.name = "scale-the-sum",
     .text =
         "a later reduction is added unscaled, then the whole sum is scaled",
     .evidence = "NVIDIA/Megatron-LM#3023",
     .kills = "accumulate.synced",
     .shows = {.in = reduces_twice},
     .device.live = scale_the_sum_live,
     .device.run = scale_the_sum,
     .forget = gradient_forget},
    /* Gradients of the step before are never dropped. */
    {.name = "zero-grad-noop",
     .text = "zero_grad does nothing",
     .evidence = "deepspeedai/DeepSpeed#966",
     .kills = "memory.rest-after-step reduce.fold",
     .shows = {.in = mutant_plain},
     .calls.zero_grad = zero_grad_noop},
    {0},
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gather_mutants.c - engines that lend the model other values than those of the
 * parameters as they are now, or change parameters by lending them.
 */
#include "mutants/mutant_kit.h"

#include <math.h>
#include <string.h>

/* The backward computes with what its forward was lent, though it was given
 * back in between. */
enum {
    PARAMETERS = 16
};
static _Thread_local struct fsdp_tensor lent[PARAMETERS];

static _Thread_local void *shard; /* the last unit's, of reshard_writes */

static void gather_forget(void)
{
    shard = NULL;
    memset(lent, 0, sizeof(lent));
}

static int backward_reads_resharded(struct fsdp_sharded *s, uint32_t p,
                                    struct fsdp_tensor *out)
{
    FSDP_TRY(mutant_real.engine.param(s, p, out));
    if (p < PARAMETERS && !mutant_now.backward) {
        lent[p] = *out;
    } else if (p < PARAMETERS && lent[p].data) {
        *out = lent[p];
    }
    return FSDP_OK;
}

static bool in_backward(void)
{
    return mutant_now.backward;
}

static _Thread_local bool summoning;

static bool in_unshard_all(void)
{
    return summoning;
}

static int summon_stale(struct fsdp_sharded *s)
{
    int status;

    summoning = true;
    status = mutant_real.engine.unshard_all(s);
    summoning = false;
    return status;
}

static bool summons(const struct run_case *c)
{
    return mutant_mlp(c) && c->scenario == CASE_SUMMON &&
           c->ranks > c->replicas && c->steps > 1;
}

/* The last element that rank 0 sends does not arrive. */
static int gather_drops_element(void *self, struct fsdp_stream *stream,
                                const struct fsdp_collective *c)
{
    const float zero = 0.0f;

    (void)self;
    FSDP_TRY(mutant_communicate(stream, c));
    if (c->kind != FSDP_ALL_GATHER || c->n == 0) {
        return FSDP_OK;
    }
    return mutant_put(stream, &zero, 1, (float *)c->out + c->n - 1);
}

static int swap_floats(struct fsdp_stream *stream, float *p, float *q,
                       uint64_t n)
{
    float a[64];
    float b[64];

    FSDP_TRY(mutant_get(stream, p, n, a));
    FSDP_TRY(mutant_get(stream, q, n, b));
    FSDP_TRY(mutant_put(stream, b, n, p));
    return mutant_put(stream, a, n, q);
}

static int gather_swapped(void *self, struct fsdp_stream *stream,
                          const struct fsdp_collective *c)
{
    float *out = c->out;

    (void)self;
    FSDP_TRY(mutant_communicate(stream, c));
    for (uint64_t i = 0; c->kind == FSDP_ALL_GATHER && i < c->n; i += 64) {
        uint64_t n = c->n - i < 64 ? c->n - i : 64;

        FSDP_TRY(swap_floats(stream, out + i, out + c->n + i, n));
    }
    return FSDP_OK;
}

static float hostile_nan(float x)
{
    (void)x;
    return NAN;
}

static void reshard_writes_live(void *self, struct fsdp_stream *stream,
                                uint32_t kind, uint32_t unit, void *p,
                                uint64_t bytes)
{
    if (kind == FSDP_PARAM_SHARD && bytes) {
        shard = p;
    }
    mutant_real.device->live(self, stream, kind, unit, p, bytes);
}

static int reshard_writes(struct fsdp_sharded *s)
{
    const struct fsdp_device *d = mutant_real.device;
    const float x = 42.0f;

    FSDP_TRY(mutant_real.engine.reshard_all(s));
    FSDP_TRY(d->sync(d->self, NULL)); /* it is wrong, and no race */
    return shard && mutant_real.rank == 0 ? mutant_put(NULL, &x, 1, shard)
                                          : FSDP_OK;
}

static bool summons_mlp(const struct run_case *c)
{
    return mutant_mlp(c) && c->scenario == CASE_SUMMON;
}

const struct mutant gather_mutants[] = {
    /* Parameters are rounded to bf16 on the wire. */
    {.name = "bf16-gather",
     .text = "gathered parameters lose 16 bits",
     .evidence = "pytorch/pytorch#190626",
     .kills = "gather.unsharded-values",
     .shows = {.in = mutant_plain},
     .gathered = mutant_as_bf16},
    /* Every number that is lent to the model is NaN. */
    {.name = "hostile-nan",
     .text = "gathered parameters are NaN, which no comparison calls greater",
     .evidence = "blind spot: a check written as error > bound passes NaN",
     .kills = "gather.unsharded-values",
     .shows = {.in = mutant_plain},
     .gathered = hostile_nan},
    {.name = "gather-drops-element",
     .text = "one element of each unit arrives as 0",
     .evidence = "uneven shards recorded as even ones",
     .kills = "gather.unsharded-values",
     .shows = {.in = mutant_plain},
     .comm.run = gather_drops_element},
    {.name = "gather-swapped",
     .text = "the parts of ranks 0 and 1 are exchanged in what is gathered",
     .evidence = "NVIDIA/physicsnemo#1614",
     .kills = "gather.unsharded-values",
     .shows = {.in = mutant_plain},
     .comm.run = gather_swapped},
    /* An all-gather is answered from a cache of the first step. */
    {.name = "gather-stale",
     .text = "some elements that are gathered are those of the first gather",
     .evidence = "NVIDIA/Megatron-LM: Megatron-FSDP v2 tests that the next "
                 "forward uses updated weights",
     .kills = "gather.sees-updated-weights",
     .shows = {.in = mutant_plain},
     .fault.kind = MUTANT_GATHERS_STALE},
    /* The backward sees older weights than its forward did. */
    {.name = "backward-stale",
     .text = "gathered for a backward, parameters are those of the first step",
     .evidence = "NVIDIA-NeMo/Automodel#3411",
     .kills = "grad.local",
     .shows = {.in = mutant_plain},
     .fault.kind = MUTANT_GATHERS_STALE,
     .when = in_backward},
    /* An evaluation does not see the weights that training sees. */
    {.name = "eval-sees-other-weights",
     .text =
         "in an evaluation, gathered parameters are those of the first step",
     .evidence = "NVIDIA/Megatron-LM: Megatron-FSDP v2 tests that the next "
                 "forward uses updated weights",
     .kills = "eval.equals-training-forward",
     .shows = {.in = mutant_evaluates},
     .fault.kind = MUTANT_GATHERS_STALE,
     .when = mutant_is_evaluating},
    /* unshard_all shows weights of the first step. */
    {.name = "summon-stale",
     .text = "unshard_all shows values of an earlier gather",
     .evidence = "pytorch/pytorch#117421",
     .kills = "gather.summoned-values",
     .shows = {.in = summons},
     .fault.kind = MUTANT_GATHERS_STALE,
     .when = in_unshard_all,
     .calls.unshard_all = summon_stale},
    {.name = "backward-reads-resharded",
     .text = "param lends in backward what it lent in forward",
     .evidence = "pytorch/pytorch#117510",
     .kills = "grad.finite",
     .shows = {.in = mutant_plain},
     .calls.param = backward_reads_resharded,
     .forget = gather_forget},
    /* Resharding after a look at all parameters changes one. */
    {.name = "reshard-writes",
     .text = "reshard_all writes an element of the first shard",
     .evidence = "pytorch/pytorch#83111",
     .kills = "step.final-weights",
     .shows = {.in = summons_mlp},
     .device.live = reshard_writes_live,
     .calls.reshard_all = reshard_writes,
     .forget = gather_forget},
    {0},
};

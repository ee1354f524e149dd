/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unit.c - 3. Unshard, reshard, accumulate, reduce: the cycle of one unit.
 */
#include "sharded.h"

#include <stddef.h>

static int collective(struct fsdp_sharded *s, uint32_t kind, uint32_t dim,
                      uint32_t u, const float *in, float *out)
{
    const struct fsdp_comm *comm = s->env->comm;
    struct fsdp_collective c = {.size = sizeof(c),
                                .kind = kind,
                                .dim = dim,
                                .dtype = FSDP_DTYPE_F32,
                                .fold = s->options.fold,
                                .unit = u,
                                .n = s->unit[u].chunk,
                                .in = in,
                                .out = out};

    if (!comm->takes_streams) { /* it reads at once what the stream makes */
        const struct fsdp_device *d = s->env->device;
        FSDP_TRY(d->wait(d->self, NULL, s->env->compute, 0,
                         "compute->communicator"));
    }
    return comm->run(comm->self, s->env->compute, &c);
}

/* With S = 1 the shard is the whole: nothing to gather, no copy. */
int ref_unshard(struct fsdp_sharded *s, uint32_t u)
{
    struct ref_unit *x = &s->unit[u];

    if (x->open) {
        return FSDP_OK;
    }
    if (s->packs) {
        FSDP_TRY(ref_take(s, FSDP_STAGING, u, x->chunk * s->shards, &x->wire));
        FSDP_TRY(collective(s, FSDP_ALL_GATHER, FSDP_DIM_SHARD, u, x->shard,
                            x->wire));
        FSDP_TRY(ref_take(s, FSDP_PARAM_FULL, u, x->whole, &x->full));
        FSDP_TRY(ref_unpack(s, u, x->full));
        ref_drop(s, &x->wire);
    } else if (s->shards > 1) {
        FSDP_TRY(ref_take(s, FSDP_PARAM_FULL, u, x->whole, &x->full));
        FSDP_TRY(collective(s, FSDP_ALL_GATHER, FSDP_DIM_SHARD, u, x->shard,
                            x->full));
    }
    x->open = true;
    return FSDP_OK;
}

void ref_reshard(struct fsdp_sharded *s, uint32_t u)
{
    ref_drop(s, &s->unit[u].full);
    s->unit[u].open = false;
}

/* A backward window begins: room for the unit's gradients, unless those of an
 * earlier microbatch are still there. */
int ref_open_gradient(struct fsdp_sharded *s, uint32_t u)
{
    struct ref_unit *x = &s->unit[u];

    if (x->grad_full) {
        return FSDP_OK;
    }
    FSDP_TRY(ref_take(s, FSDP_GRAD_FULL, u, x->whole, &x->grad_full));
    return ref_fill_zero(s, u, x->grad_full + x->numel, x->whole - x->numel);
}

/* A module's backward is over: the first gradient of a parameter already
 * stands in grad_full, a later one is added to it. */
int ref_take_gradients(struct fsdp_sharded *s, uint32_t module)
{
    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        struct ref_parameter *x = &s->parameter[p];
        if (s->model->parameter_module[p] != module || !x->fresh) {
            continue;
        }
        if (x->staging) {
            float *sum = s->unit[x->unit].grad_full + x->offset;
            uint64_t bytes = x->numel * sizeof(*sum);
            FSDP_TRY(ref_run(
                s, (struct fsdp_op){.kind = FSDP_OP_ADD,
                                    .unit = x->unit,
                                    .dim = {x->numel},
                                    .n_in = 2,
                                    .in = {{sum, bytes}, {x->staging, bytes}},
                                    .n_out = 1,
                                    .out = {{sum, bytes}}}));
            ref_drop(s, &x->staging);
        }
        x->fresh = false;
        x->accumulated = true;
    }
    return FSDP_OK;
}

/* A parameter that got no gradient contributes +0. */
static int fill_missing(struct fsdp_sharded *s, uint32_t u)
{
    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        struct ref_parameter *x = &s->parameter[p];
        if (x->unit == u && !x->accumulated) {
            FSDP_TRY(ref_fill_zero(s, u, s->unit[u].grad_full + x->offset,
                                   x->numel));
        }
        if (x->unit == u) {
            x->accumulated = false;
        }
    }
    return FSDP_OK;
}

/* The sum over ranks, of this rank's chunk: within the shard group, then
 * across replicas; times 1 / divide factor, once. */
static int reduce_into(struct fsdp_sharded *s, uint32_t u, float *to)
{
    struct ref_unit *x = &s->unit[u];
    const struct fsdp_device *d = s->env->device;
    uint64_t bytes = x->chunk * sizeof(*to);

    if (s->shards > 1) {
        FSDP_TRY(collective(s, FSDP_REDUCE_SCATTER, FSDP_DIM_SHARD, u,
                            s->packs ? x->wire : x->grad_full, to));
    } else {
        FSDP_TRY(d->copy(d->self, s->env->compute, to, x->grad_full, bytes));
    }
    if (s->replicas > 1) {
        FSDP_TRY(collective(s, FSDP_ALL_REDUCE, FSDP_DIM_REPLICATE, u, to, to));
    }
    return ref_run(s, (struct fsdp_op){.kind = FSDP_OP_SCALE,
                                       .unit = u,
                                       .dim = {x->chunk},
                                       .f = {s->divide},
                                       .n_in = 1,
                                       .in = {{to, bytes}},
                                       .n_out = 1,
                                       .out = {{to, bytes}}});
}

/* Only the new contribution is divided, never the sum. */
int ref_reduce(struct fsdp_sharded *s, uint32_t u)
{
    struct ref_unit *x = &s->unit[u];
    uint64_t bytes = x->chunk * sizeof(float);
    float *staging = NULL;
    int status;

    FSDP_TRY(fill_missing(s, u));
    if (s->packs) { /* what is packed is not needed in full any more */
        FSDP_TRY(ref_take(s, FSDP_STAGING, u, x->chunk * s->shards, &x->wire));
        FSDP_TRY(ref_pack(s, u, x->grad_full));
        ref_drop(s, &x->grad_full);
    }
    if (!x->grad_shard) {
        FSDP_TRY(ref_take(s, FSDP_GRAD_SHARD, u, x->chunk, &x->grad_shard));
        FSDP_TRY(reduce_into(s, u, x->grad_shard));
        ref_drop(s, &x->wire);
        ref_drop(s, &x->grad_full);
        return FSDP_OK;
    }
    FSDP_TRY(ref_take(s, FSDP_STAGING, u, x->chunk, &staging));
    status = reduce_into(s, u, staging);
    if (status == FSDP_OK) {
        status = ref_run(s, (struct fsdp_op){.kind = FSDP_OP_ADD,
                                             .unit = u,
                                             .dim = {x->chunk},
                                             .n_in = 2,
                                             .in = {{x->grad_shard, bytes},
                                                    {staging, bytes}},
                                             .n_out = 1,
                                             .out = {{x->grad_shard, bytes}}});
    }
    ref_drop(s, &staging);
    ref_drop(s, &x->wire);
    ref_drop(s, &x->grad_full);
    return status;
}

/* Reduced and pending ones. */
void ref_drop_gradients(struct fsdp_sharded *s)
{
    for (uint32_t u = 0; u < s->units->n_units; u++) {
        ref_drop(s, &s->unit[u].grad_full);
        ref_drop(s, &s->unit[u].grad_shard);
    }
    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        ref_drop(s, &s->parameter[p].staging);
        s->parameter[p].fresh = false;
        s->parameter[p].accumulated = false;
    }
}

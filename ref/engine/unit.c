/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unit.c - 3. Unshard, reshard, accumulate: the cycle of one unit, as far as
 * the reduction (reduce.c).
 */
#include "sharded.h"

#include <assert.h>
#include <stddef.h>

int ref_collective(struct fsdp_sharded *s, struct fsdp_collective c)
{
    const struct fsdp_comm *comm = s->env->comm;

    c.size = sizeof(c);
    c.fold = s->options.fold;
    c.n = c.kind == FSDP_ALL_GATHER ? s->unit[c.unit].chunk
                                    : s->unit[c.unit].grad_chunk;
    if (!comm->takes_streams) { /* it reads at once what the stream is still
                                 * writing */
        const struct fsdp_device *d = s->env->device;
        FSDP_TRY(d->wait(d->self, NULL, s->env->compute, 0,
                         "compute->communicator"));
    }
    return comm->run(comm->self, s->env->compute, &c);
}

/* This rank's shard, rounded to the dtype, on the device. */
static int put_shard(struct fsdp_sharded *s, uint32_t u, uint32_t dtype,
                     void *to)
{
    struct ref_unit *x = &s->unit[u];
    const uint64_t bytes = x->chunk * sizeof(*x->shard);
    const float *from = x->shard;
    int status;

    if (x->shard_at == REF_HOST && dtype == FSDP_DTYPE_F32) {
        return ref_cross(s, REF_DEVICE, bytes, x->shard, to);
    }
    if (x->shard_at == REF_HOST) {
        FSDP_TRY(ref_take(s, REF_DEVICE, FSDP_STAGING, u, x->chunk,
                          FSDP_DTYPE_F32, &x->brought));
        FSDP_TRY(ref_cross(s, REF_DEVICE, bytes, x->shard, x->brought));
        from = x->brought;
    }
    status = ref_convert(s, REF_DEVICE, u, x->chunk, FSDP_DTYPE_F32, from,
                         dtype, to);
    ref_drop(s, REF_DEVICE, &x->brought);
    return status;
}

/* The shards of all ranks, each rounded to the dtype, one behind the other in
 * `to`. A shard that is rounded, or copied from the host, is written directly
 * to its place there. */
static int gather(struct fsdp_sharded *s, uint32_t u, uint32_t dtype, void *to)
{
    const struct ref_unit *x = &s->unit[u];
    void *mine = ref_at(to, dtype, s->coordinate * x->chunk);
    const bool moves = dtype != FSDP_DTYPE_F32 || x->shard_at == REF_HOST;

    if (moves) {
        FSDP_TRY(put_shard(s, u, dtype, mine));
    }
    return ref_collective(
        s, (struct fsdp_collective){.kind = FSDP_ALL_GATHER,
                                    .dim = FSDP_DIM_SHARD,
                                    .dtype = dtype,
                                    .unit = u,
                                    .in = moves ? mine : x->shard,
                                    .out = to});
}

/* With S = 1 the shard is the whole unit: nothing is gathered, and nothing
 * copied unless the dtype differs or the shard is on the host. */
int ref_unshard(struct fsdp_sharded *s, uint32_t u, uint32_t dtype)
{
    struct ref_unit *x = &s->unit[u];

    if (x->open) {
        return FSDP_OK;
    }
    assert(!x->full && !x->wire);
    x->full_dtype = dtype;
    if (s->packs) {
        FSDP_TRY(ref_take(s, REF_DEVICE, FSDP_STAGING, u, x->chunk * s->shards,
                          dtype, &x->wire));
        FSDP_TRY(gather(s, u, dtype, x->wire));
        FSDP_TRY(ref_take(s, REF_DEVICE, FSDP_PARAM_FULL, u, x->whole, dtype,
                          &x->full));
        FSDP_TRY(ref_unpack(s, u, dtype));
        ref_drop(s, REF_DEVICE, &x->wire);
    } else if (s->shards > 1) {
        FSDP_TRY(ref_take(s, REF_DEVICE, FSDP_PARAM_FULL, u, x->whole, dtype,
                          &x->full));
        FSDP_TRY(gather(s, u, dtype, x->full));
    } else if (dtype != FSDP_DTYPE_F32 || x->shard_at == REF_HOST) {
        FSDP_TRY(ref_take(s, REF_DEVICE, FSDP_PARAM_FULL, u, x->whole, dtype,
                          &x->full));
        FSDP_TRY(put_shard(s, u, dtype, x->full));
    }
    x->open = true;
    return FSDP_OK;
}

void ref_reshard(struct fsdp_sharded *s, uint32_t u)
{
    ref_drop(s, REF_DEVICE, &s->unit[u].full);
    s->unit[u].open = s->unit[u].windowed = false;
}

void ref_reshard_each(struct fsdp_sharded *s)
{
    for (uint32_t u = 0; u < s->units->n_units; u++) {
        ref_reshard(s, u);
    }
}

/* A backward window begins: room for the unit's gradients, unless those of an
 * earlier microbatch are still there. */
int ref_open_gradient(struct fsdp_sharded *s, uint32_t u)
{
    struct ref_unit *x = &s->unit[u];
    const uint32_t dtype = x->dtype.accumulate;

    if (x->grad_full || !x->trains) {
        return FSDP_OK;
    }
    FSDP_TRY(ref_take(s, REF_DEVICE, FSDP_GRAD_FULL, u, x->grad_whole, dtype,
                      &x->grad_full));
    return ref_fill_zero(s, REF_DEVICE, u, dtype,
                         ref_at(x->grad_full, dtype, x->grad_numel),
                         x->grad_whole - x->grad_numel);
}

/* A module's backward is over. The first gradient of a parameter is kept, and
 * is in grad_full already, unless its dtype differs or the parameter is tied;
 * later ones, under whichever name, are added to it. */
int ref_take_gradients(struct fsdp_sharded *s, uint32_t module)
{
    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        struct ref_parameter *x = &s->parameter[p];
        struct ref_parameter *original = &s->parameter[x->original];
        const struct ref_unit *u;
        uint32_t dtype;
        void *sum;

        if (s->model->parameter_module[p] != module || !x->fresh) {
            continue;
        }
        u = &s->unit[x->unit];
        dtype = u->dtype.accumulate;
        assert(u->grad_full); /* it was taken when the window opened */
        sum = ref_at(u->grad_full, dtype, original->grad_offset);
        if (x->staging && original->accumulated) {
            FSDP_TRY(ref_add_to(s, REF_DEVICE, x->unit, x->numel, dtype, sum,
                                u->dtype.grad, x->staging));
        } else if (x->staging) {
            FSDP_TRY(ref_convert(s, REF_DEVICE, x->unit, x->numel,
                                 u->dtype.grad, x->staging, dtype, sum));
        }
        ref_drop(s, REF_DEVICE, &x->staging);
        x->fresh = false;
        original->accumulated = true;
    }
    return FSDP_OK;
}

/* Drops all gradients: reduced, pending and partial ones. */
void ref_drop_gradients(struct fsdp_sharded *s)
{
    for (uint32_t u = 0; u < s->units->n_units; u++) {
        ref_drop(s, REF_DEVICE, &s->unit[u].grad_full);
        ref_drop(s, s->unit[u].step_at, &s->unit[u].grad_shard);
        ref_drop(s, REF_DEVICE, &s->unit[u].partial);
    }
    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        ref_drop(s, REF_DEVICE, &s->parameter[p].staging);
        s->parameter[p].fresh = false;
        s->parameter[p].accumulated = false;
    }
}

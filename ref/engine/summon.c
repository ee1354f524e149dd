/* SPDX-License-Identifier: Apache-2.0 */
/*
 * summon.c - unshards one unit to be read; or the model on rank 0 alone, to
 * which the other ranks send their parts, one tensor after the other.
 */
#include "sharded.h"

static int check_summon(struct fsdp_sharded *s, const struct fsdp_summon *how)
{
    FSDP_TRY(ref_at_rest(s, "ref.summon"));
    if (how->one_unit && how->unit >= s->units->n_units) {
        return ref_fail(s->env, FSDP_ERR_INVALID, "ref.summon", "unit %u of %u",
                        how->unit, s->units->n_units);
    }
    return ref_check_filled(s, "ref.summon", true);
}

static int broadcast(struct fsdp_sharded *s, const struct ref_part *part,
                     uint32_t owner, float *p)
{
    const struct fsdp_device *d = s->env->device;
    const struct fsdp_comm *comm = s->env->comm;
    const struct fsdp_collective c = {.size = sizeof(c),
                                      .kind = FSDP_BROADCAST,
                                      .dim = FSDP_DIM_SHARD,
                                      .dtype = FSDP_DTYPE_F32,
                                      .root = owner,
                                      .unit =
                                          s->parameter[part->parameter].unit,
                                      .n = part->n,
                                      .in = s->coordinate == owner ? p : NULL,
                                      .out = p};

    FSDP_TRY(
        d->wait(d->self, NULL, s->env->compute, 0, "compute->communicator"));
    return comm->run(comm->self, NULL, &c);
}

/* This rank's own part of the parameter, on the device. */
static int bring(struct fsdp_sharded *s, const struct ref_part *part, float *to)
{
    const struct fsdp_device *d = s->env->device;
    const struct ref_unit *x = &s->unit[s->parameter[part->parameter].unit];
    const uint64_t bytes = part->n * sizeof(*to);

    return x->shard_at == REF_HOST
               ? ref_cross(s, REF_DEVICE, bytes, x->shard + part->local, to)
               : d->copy(d->self, s->env->compute, to, x->shard + part->local,
                         bytes);
}

/* On the other ranks a part is on the device only while it is sent, unless it
 * rests there. */
static int pass_on(struct fsdp_sharded *s, const struct ref_part *part,
                   uint32_t owner)
{
    const uint32_t u = s->parameter[part->parameter].unit;
    const bool owns = s->coordinate == owner;
    float *staging = NULL;
    int status = FSDP_OK;

    if (owns && s->unit[u].shard_at == REF_DEVICE) {
        return broadcast(s, part, owner, s->unit[u].shard + part->local);
    }
    FSDP_TRY(ref_take(s, REF_DEVICE, FSDP_STAGING, u, part->n, FSDP_DTYPE_F32,
                      &staging));
    status = owns ? bring(s, part, staging) : FSDP_OK;
    if (status == FSDP_OK) {
        status = broadcast(s, part, owner, staging);
    }
    ref_drop(s, REF_DEVICE, &staging);
    return status;
}

static int send(struct fsdp_sharded *s, uint32_t p, uint32_t owner)
{
    const struct ref_unit *x = &s->unit[s->parameter[p].unit];
    struct ref_part part;
    float *to;

    if (!ref_part(s, p, owner, &part)) {
        return FSDP_OK;
    }
    if (s->env->rank > 0) {
        return owner > 0 ? pass_on(s, &part, owner) : FSDP_OK;
    }
    to = (float *)x->full + s->parameter[p].offset + part.first;
    return owner > 0 ? broadcast(s, &part, owner, to) : bring(s, &part, to);
}

/* Rank 0 is the first rank of the first replica, whose ranks together have the
 * whole model. */
static int send_unit(struct fsdp_sharded *s, uint32_t u)
{
    struct ref_unit *x = &s->unit[u];

    if (s->env->rank == 0) {
        FSDP_TRY(ref_take(s, REF_DEVICE, FSDP_PARAM_FULL, u, x->whole,
                          FSDP_DTYPE_F32, &x->full));
        x->full_dtype = FSDP_DTYPE_F32;
    }
    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        for (uint32_t k = 0; ref_is_in(s, p, u) && k < s->shards; k++) {
            FSDP_TRY(send(s, p, k));
        }
    }
    x->open = s->env->rank == 0;
    return FSDP_OK;
}

int ref_summon(struct fsdp_sharded *s, const struct fsdp_summon *how)
{
    FSDP_TRY(check_summon(s, how));
    ref_reshard_each(s);
    s->all_unsharded = true;
    for (uint32_t u = 0; u < s->units->n_units; u++) {
        if (how->one_unit && u != how->unit) {
            continue;
        }
        if (!how->rank0_only || (s->shards == 1 && s->env->rank == 0)) {
            FSDP_TRY(ref_unshard(s, u, FSDP_DTYPE_F32));
        } else if (s->shards > 1 && s->env->rank < s->shards) {
            FSDP_TRY(send_unit(s, u));
        }
    }
    return FSDP_OK;
}

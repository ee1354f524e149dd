/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank0.c - initial values that rank 0 alone has: it sends one parameter after
 * the other, whole, and each rank keeps what it owns of it.
 */
#include "sharded.h"

static int broadcast(struct fsdp_sharded *s, uint32_t p, float *whole)
{
    const struct fsdp_comm *comm = s->env->comm;
    const struct fsdp_collective c = {.size = sizeof(c),
                                      .kind = FSDP_BROADCAST,
                                      .dim = FSDP_DIM_WORLD,
                                      .dtype = FSDP_DTYPE_F32,
                                      .root = 0,
                                      .unit = s->parameter[p].unit,
                                      .n = s->parameter[p].numel,
                                      .in = s->env->rank == 0 ? whole : NULL,
                                      .out = whole};

    return comm->run(comm->self, NULL, &c);
}

static int keep(struct fsdp_sharded *s, uint32_t p, const float *whole)
{
    const struct fsdp_device *d = s->env->device;
    struct ref_part part;

    return ref_part(s, p, s->coordinate, &part)
               ? d->copy(d->self, NULL,
                         s->unit[s->parameter[p].unit].shard + part.local,
                         whole + part.first, part.n * sizeof(*whole))
               : FSDP_OK;
}

static int send(struct fsdp_sharded *s, uint32_t p)
{
    const struct fsdp_device *d = s->env->device;
    const struct ref_parameter *x = &s->parameter[p];
    float *whole = NULL;
    int status;

    FSDP_TRY(ref_take(s, REF_DEVICE, FSDP_STAGING, x->unit, x->numel,
                      FSDP_DTYPE_F32, &whole));
    status = d->wait(d->self, NULL, s->env->compute, 0, "fill->copy");
    if (status == FSDP_OK && s->env->rank == 0) {
        status = ref_read_initial(s, p, 0, x->numel, whole);
    }
    if (status == FSDP_OK) {
        status = broadcast(s, p, whole);
    }
    if (status == FSDP_OK) {
        status = keep(s, p, whole);
    }
    ref_drop(s, REF_DEVICE, &whole);
    return status;
}

int ref_send_initial(struct fsdp_sharded *s)
{
    s->loaded = true; /* a load that fails cannot ask for them again */
    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        if (s->parameter[p].unit != FSDP_NO_UNIT &&
            s->parameter[p].original == p && s->parameter[p].numel > 0) {
            FSDP_TRY(send(s, p));
        }
    }
    return FSDP_OK;
}

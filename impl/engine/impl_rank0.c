/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_rank0.c - initial values that only rank 0 has: rank 0 sends all
 * parameters of a unit at once, one unit after the other, and each rank keeps
 * the part that it owns.
 */
#include "impl_calls.h"

static int read(const struct fsdp_sharded *s, uint32_t u, float *all)
{
    const struct impl_index *of = &s->of_unit;

    for (uint32_t i = of->first[u]; i < of->first[u + 1]; i++) {
        const struct impl_parameter *x = &s->parameter[of->parameter[i]];

        FSDP_TRY(impl_read_initial(s, of->parameter[i], 0, x->numel,
                                   all + x->offset));
    }
    return FSDP_OK;
}

int impl_broadcast(const struct fsdp_sharded *s, uint32_t u, float *all,
                   uint64_t n)
{
    const struct fsdp_comm *comm = s->env->comm;
    const bool is_root = s->env->rank == 0;
    const struct fsdp_collective c = {.size = sizeof(c),
                                      .kind = FSDP_BROADCAST,
                                      .dim = FSDP_DIM_WORLD,
                                      .dtype = FSDP_DTYPE_F32,
                                      .root = 0,
                                      .unit = u,
                                      .n = n,
                                      .in = is_root ? all : NULL,
                                      .out = all};

    return comm->run(comm->self, NULL, &c);
}

static int keep(const struct fsdp_sharded *s, uint32_t u, const float *all)
{
    const struct impl_index *of = &s->of_unit;

    for (uint32_t i = of->first[u]; i < of->first[u + 1]; i++) {
        const struct impl_parameter *x = &s->parameter[of->parameter[i]];

        if (x->n > 0) {
            FSDP_TRY(impl_copy(s, NULL, s->unit[u].shard + x->local,
                               all + x->offset + x->first,
                               x->n * sizeof(*all)));
        }
    }
    return FSDP_OK;
}

static int send(struct fsdp_sharded *s, uint32_t u)
{
    const uint64_t n = s->unit[u].numel;
    void *all = NULL;
    int status;

    FSDP_TRY(impl_take(
        s, NULL,
        (struct impl_value){
            .kind = FSDP_STAGING, .unit = u, .dtype = FSDP_DTYPE_F32, .n = n},
        NULL, &all));
    status = s->env->rank == 0 ? read(s, u, all) : FSDP_OK;
    if (status == FSDP_OK) {
        status = impl_broadcast(s, u, all, n);
    }
    if (status == FSDP_OK) {
        status = keep(s, u, all);
    }
    impl_dead(s, NULL, &all, n);
    return status;
}

int impl_send_initial(struct fsdp_sharded *s)
{
    s->loaded = true; /* this rank cannot make its values again */
    for (uint32_t u = 0; u < s->units.n_units; u++) {
        if (s->unit[u].numel > 0) {
            FSDP_TRY(send(s, u));
        }
    }
    return FSDP_OK;
}

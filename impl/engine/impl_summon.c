/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_summon.c - unshards one unit to be read; or the model on rank 0 alone,
 * to which the other ranks send the parts of a tensor that they own. Nothing
 * here lies in a slot: the values that are shown have storage of their own,
 * which is freed when they are given back.
 */
#include "impl_calls.h"

static int check_summon(struct fsdp_sharded *s, const struct fsdp_summon *how)
{
    FSDP_TRY(impl_at_rest(s, "impl.summon"));
    if (how->one_unit && how->unit >= s->units.n_units) {
        return impl_fail(s->env, FSDP_ERR_INVALID, "impl.summon",
                         "unit %u of %u", how->unit, s->units.n_units);
    }
    return impl_check_filled(s, "impl.summon", true);
}

/* ---- On every rank ------------------------------------------------------- */

static int gather(struct fsdp_sharded *s, uint32_t u)
{
    s->unit[u].arrived_life = NULL;
    if (s->shards > 1 || s->unit[u].shard_on_host) {
        FSDP_TRY(impl_gather(s, u, FSDP_DTYPE_F32, NULL, 0));
    }
    FSDP_TRY(impl_open(s, u));
    return s->packs ? impl_unpack(s, u, NULL) : FSDP_OK;
}

/* ---- On rank 0 ----------------------------------------------------------- */

/* Elements [first, first + n) of a parameter, which shard `owner` has. */
struct part {
    const struct impl_parameter *of;
    uint32_t owner;
    uint64_t first, n;
};

static int broadcast(const struct fsdp_sharded *s, const struct part *x,
                     float *p)
{
    const struct fsdp_comm *comm = s->env->comm;
    const bool is_root = s->coordinate == x->owner;
    const struct fsdp_collective c = {.size = sizeof(c),
                                      .kind = FSDP_BROADCAST,
                                      .dim = FSDP_DIM_SHARD,
                                      .dtype = FSDP_DTYPE_F32,
                                      .root = x->owner,
                                      .unit = x->of->unit,
                                      .n = x->n,
                                      .in = is_root ? p : NULL,
                                      .out = p};

    return comm->run(comm->self, NULL, &c);
}

static float *own(const struct fsdp_sharded *s, const struct part *x)
{
    return s->unit[x->of->unit].shard + x->of->local;
}

static int take_in(const struct fsdp_sharded *s, const struct part *x)
{
    float *to = (float *)s->unit[x->of->unit].full + x->of->offset + x->first;

    return x->owner > 0 ? broadcast(s, x, to)
                        : impl_copy(s, NULL, to, own(s, x), x->n * sizeof(*to));
}

static int pass_on(struct fsdp_sharded *s, const struct part *x)
{
    const bool owns = s->coordinate == x->owner;
    void *staging = NULL;
    int status = FSDP_OK;

    if (owns && !s->unit[x->of->unit].shard_on_host) {
        return broadcast(s, x, own(s, x));
    }
    FSDP_TRY(impl_take(s, NULL,
                       (struct impl_value){FSDP_STAGING, x->of->unit,
                                           FSDP_DTYPE_F32, x->n, false},
                       NULL, &staging));
    if (owns) {
        status = impl_copy(s, NULL, staging, own(s, x), x->n * sizeof(float));
    }
    if (status == FSDP_OK) {
        status = broadcast(s, x, staging);
    }
    impl_dead(s, NULL, &staging, x->n);
    return status;
}

static int send(struct fsdp_sharded *s, uint32_t u)
{
    const struct impl_index *of = &s->of_unit;
    struct impl_unit *unit = &s->unit[u];

    if (s->env->rank == 0) {
        FSDP_TRY(
            impl_take(s, NULL,
                      (struct impl_value){FSDP_PARAM_FULL, u, FSDP_DTYPE_F32,
                                          unit->whole, false},
                      NULL, &unit->full));
        unit->full_dtype = FSDP_DTYPE_F32;
        unit->open = true;
    }
    for (uint32_t i = of->first[u]; i < of->first[u + 1]; i++) {
        for (uint32_t k = 0; k < s->shards; k++) {
            struct part x = {.of = &s->parameter[of->parameter[i]], .owner = k};

            impl_part(s, x.of, k, &x.first, &x.n);
            if (x.n > 0 && (s->env->rank == 0 || k > 0)) {
                FSDP_TRY(s->env->rank == 0 ? take_in(s, &x) : pass_on(s, &x));
            }
        }
    }
    return FSDP_OK;
}

/* Only ranks of the first replica take part. */
static int show_rank0(struct fsdp_sharded *s, uint32_t u)
{
    if (s->shards == 1) {
        return s->env->rank == 0 ? gather(s, u) : FSDP_OK;
    }
    return s->env->rank < s->shards ? send(s, u) : FSDP_OK;
}

int impl_summon(struct fsdp_sharded *s, const struct fsdp_summon *how)
{
    FSDP_TRY(check_summon(s, how));
    FSDP_TRY(impl_reshard_kept(s));
    FSDP_TRY(impl_retire_all(s)); /* what is sent may lie where units arrive */
    if (how->rank0_only) {        /* on no stream */
        FSDP_TRY(s->env->device->sync(s->env->device->self, NULL));
    }
    s->all_unsharded = true;
    for (uint32_t u = 0; u < s->units.n_units; u++) {
        if (!how->one_unit || u == how->unit) {
            FSDP_TRY(how->rank0_only ? show_rank0(s, u) : gather(s, u));
        }
    }
    return FSDP_OK;
}

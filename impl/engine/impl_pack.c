/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_pack.c - under the per-parameter layout, between what goes over the
 * wire, shard by shard, and a unit's parameters, each in one piece. A
 * parameter's full blocks are one strided copy, its last, short one another:
 * every element is moved once. All of it is compute's, between
 * "all-gather->compute" and "compute->reduce-scatter".
 */
#include "impl_state.h"

/* `rows` rows of n elements between strides, from `from` to `to`. */
static int copy_rows(const struct fsdp_sharded *s, uint32_t u, uint64_t rows,
                     uint64_t n, float *to, uint64_t to_stride,
                     const float *from, uint64_t from_stride)
{
    const uint64_t size = sizeof(*to);

    if (rows == 0 || n == 0) {
        return FSDP_OK;
    }
    return impl_run(
        s, s->env->compute,
        (struct fsdp_op){
            .kind = FSDP_OP_COPY_2D,
            .unit = u,
            .dim = {rows, n * size, to_stride * size, from_stride * size},
            .n_in = 1,
            .in = {{from, ((rows - 1) * from_stride + n) * size}},
            .n_out = 1,
            .out = {{to, ((rows - 1) * to_stride + n) * size}}});
}

static int unpack(const struct fsdp_sharded *s, const struct impl_parameter *x)
{
    const struct impl_unit *unit = &s->unit[x->unit];
    const float *from = unit->arrived + x->block_at;
    float *to = unit->full + x->offset;
    uint64_t n = x->block > 0 ? x->numel / x->block : 0; /* full blocks */

    FSDP_TRY(
        copy_rows(s, x->unit, n, x->block, to, x->block, from, unit->chunk));
    return copy_rows(s, x->unit, 1, x->numel - n * x->block, to + n * x->block,
                     0, from + n * unit->chunk, 0);
}

static int pack(const struct fsdp_sharded *s, const struct impl_parameter *x)
{
    const struct impl_unit *unit = &s->unit[x->unit];
    const float *from = unit->grad + x->offset;
    float *to = unit->packed + x->block_at;
    uint64_t n = x->block > 0 ? x->numel / x->block : 0;

    FSDP_TRY(
        copy_rows(s, x->unit, n, x->block, to, unit->chunk, from, x->block));
    return copy_rows(s, x->unit, 1, x->numel - n * x->block,
                     to + n * unit->chunk, 0, from + n * x->block, 0);
}

/* What lies between rows: gaps that meet are one. */
static int fill_padding(const struct fsdp_sharded *s, uint32_t u)
{
    const struct impl_index *of = &s->of_unit;
    const struct impl_unit *unit = &s->unit[u];
    uint64_t done = 0;

    for (uint32_t k = 0; k < s->shards && unit->padded > unit->numel; k++) {
        for (uint32_t i = of->first[u]; i < of->first[u + 1]; i++) {
            const struct impl_parameter *x = &s->parameter[of->parameter[i]];
            uint64_t at = k * unit->chunk + x->block_at;
            uint64_t n = impl_rows(x, k);
            if (n == 0) {
                continue;
            }
            FSDP_TRY(impl_fill_zero(s, s->env->compute, u, unit->packed + done,
                                    at - done));
            done = at + n;
        }
    }
    if (unit->padded == unit->numel) {
        return FSDP_OK;
    }
    return impl_fill_zero(s, s->env->compute, u, unit->packed + done,
                          unit->padded - done);
}

int impl_unpack(struct fsdp_sharded *s, uint32_t u, float *slot)
{
    const struct impl_index *of = &s->of_unit;
    struct impl_unit *x = &s->unit[u];
    struct impl_life *life = x->arrived_life;

    FSDP_TRY(impl_take(s, s->env->compute, FSDP_PARAM_FULL, u, x->whole, slot,
                       &x->full));
    for (uint32_t i = of->first[u]; i < of->first[u + 1]; i++) {
        FSDP_TRY(unpack(s, &s->parameter[of->parameter[i]]));
    }
    impl_dead(s, s->env->compute, &x->arrived, x->padded);
    return life ? impl_mark(s, s->env->compute, &life->died) : FSDP_OK;
}

int impl_pack(struct fsdp_sharded *s, uint32_t u, struct impl_life *life)
{
    const struct impl_index *of = &s->of_unit;
    struct impl_unit *x = &s->unit[u];

    FSDP_TRY(impl_fill_missing(s, u));
    x->packed_life = life;
    FSDP_TRY(impl_take(s, s->env->compute, FSDP_STAGING, u, x->padded,
                       impl_slot(&s->wire, life->offset), &x->packed));
    for (uint32_t i = of->first[u]; i < of->first[u + 1]; i++) {
        FSDP_TRY(pack(s, &s->parameter[of->parameter[i]]));
    }
    FSDP_TRY(fill_padding(s, u));
    impl_dead(s, s->env->compute, &x->grad, x->whole);
    return FSDP_OK;
}

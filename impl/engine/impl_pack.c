/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_pack.c - between the wire and a unit's parameters. Under the
 * per-parameter layout the wire has a unit shard by shard, and memory has each
 * parameter in one piece. A parameter's full blocks are one strided copy, and
 * its last, short block is another, so that every element is moved once. A
 * gradient that is sent in another dtype than it was summed in is cast on the
 * way, block by block. All of this is work of the compute stream, between
 * "all-gather->compute" and "compute->reduce-scatter".
 */
#include "impl_calls.h"

/* `rows` rows of n elements between strides, from `from` to `to`. */
struct rows {
    uint32_t unit, dtype;
    uint64_t rows, n;
    void *to;
    uint64_t to_stride;
    const void *from;
    uint64_t from_stride;
};

static int copy_rows(const struct fsdp_sharded *s, const struct rows *x)
{
    const uint64_t size = fsdp_dtype_bytes(x->dtype);

    if (x->rows == 0 || x->n == 0) {
        return FSDP_OK;
    }
    return impl_run(
        s, s->env->compute,
        (struct fsdp_op){
            .kind = FSDP_OP_COPY_2D,
            .unit = x->unit,
            .dim = {x->rows, x->n * size, x->to_stride * size,
                    x->from_stride * size},
            .n_in = 1,
            .in = {{x->from, ((x->rows - 1) * x->from_stride + x->n) * size}},
            .n_out = 1,
            .out = {{x->to, ((x->rows - 1) * x->to_stride + x->n) * size}}});
}

static int unpack(const struct fsdp_sharded *s, const struct impl_parameter *x)
{
    const struct impl_unit *unit = &s->unit[x->unit];
    uint32_t dtype = unit->full_dtype;
    uint64_t n = x->block > 0 ? x->numel / x->block : 0; /* full blocks */
    const struct rows full = {
        x->unit,
        dtype,
        n,
        x->block,
        impl_element(unit->full, dtype, x->offset),
        x->block,
        impl_element(unit->arrived, dtype, x->block_at),
        unit->chunk,
    };
    const struct rows last = {
        .unit = x->unit,
        .dtype = dtype,
        .rows = 1,
        .n = x->numel - n * x->block,
        .to = impl_element(full.to, dtype, n * x->block),
        .from = impl_element(full.from, dtype, n * unit->chunk)};

    FSDP_TRY(copy_rows(s, &full));
    return copy_rows(s, &last);
}

static int pack(const struct fsdp_sharded *s, const struct impl_parameter *x)
{
    const struct impl_unit *unit = &s->unit[x->unit];
    uint32_t dtype = unit->dtype.reduce;
    uint64_t n = x->block > 0 ? x->numel / x->block : 0;
    const struct rows full = {
        x->unit,
        dtype,
        n,
        x->block,
        impl_element(unit->packed, dtype, x->grad_block_at),
        unit->grad_chunk,
        impl_element(unit->grad, dtype, x->grad_offset),
        x->block,
    };
    const struct rows last = {
        .unit = x->unit,
        .dtype = dtype,
        .rows = 1,
        .n = x->numel - n * x->block,
        .to = impl_element(full.to, dtype, n * unit->grad_chunk),
        .from = impl_element(full.from, dtype, n * x->block)};

    FSDP_TRY(copy_rows(s, &full));
    return copy_rows(s, &last);
}

static int cast_range(const struct fsdp_sharded *s, uint32_t u, uint64_t to,
                      uint64_t from, uint64_t n)
{
    const struct impl_unit *x = &s->unit[u];
    const struct impl_dtypes *d = &x->dtype;

    return impl_cast(
        s, s->env->compute,
        &(struct impl_cast){.unit = u,
                            .from_dtype = d->accumulate,
                            .to_dtype = d->reduce,
                            .from = impl_element(x->grad, d->accumulate, from),
                            .to = impl_element(x->packed, d->reduce, to),
                            .n = n});
}

static int pack_cast(const struct fsdp_sharded *s,
                     const struct impl_parameter *x)
{
    uint64_t chunk = s->unit[x->unit].grad_chunk;

    for (uint32_t k = 0; k < s->shards; k++) {
        FSDP_TRY(cast_range(s, x->unit, k * chunk + x->grad_block_at,
                            x->grad_offset + k * x->block, impl_rows(x, k)));
    }
    return FSDP_OK;
}

static int fill(const struct fsdp_sharded *s, uint32_t u, uint64_t from,
                uint64_t to)
{
    const struct impl_unit *x = &s->unit[u];

    return impl_fill_zero(s, s->env->compute, u, x->dtype.reduce,
                          impl_element(x->packed, x->dtype.reduce, from),
                          to - from);
}

/* Fills the gaps between rows with zeros; adjacent gaps are filled as one. */
static int fill_padding(const struct fsdp_sharded *s, uint32_t u)
{
    const struct impl_index *of = &s->of_unit;
    const struct impl_unit *unit = &s->unit[u];
    const bool has_padding = unit->grad_padded > unit->grad_numel;
    uint64_t done = 0;

    for (uint32_t k = 0; k < s->shards && has_padding; k++) {
        for (uint32_t i = of->first[u]; i < of->first[u + 1]; i++) {
            const struct impl_parameter *x = &s->parameter[of->parameter[i]];
            uint64_t at = k * unit->grad_chunk + x->grad_block_at;
            uint64_t n = impl_rows(x, k);
            if (n == 0 || x->frozen) {
                continue;
            }
            FSDP_TRY(fill(s, u, done, at));
            done = at + n;
        }
    }
    return has_padding ? fill(s, u, done, unit->grad_padded) : FSDP_OK;
}

int impl_unpack(struct fsdp_sharded *s, uint32_t u, void *slot)
{
    const struct impl_index *of = &s->of_unit;
    struct impl_unit *x = &s->unit[u];
    struct impl_life *life = x->arrived_life;

    FSDP_TRY(impl_take(
        s, s->env->compute,
        (struct impl_value){FSDP_PARAM_FULL, u, x->full_dtype, x->whole, false},
        slot, &x->full));
    for (uint32_t i = of->first[u]; i < of->first[u + 1]; i++) {
        FSDP_TRY(unpack(s, &s->parameter[of->parameter[i]]));
    }
    impl_dead(s, s->env->compute, &x->arrived, x->padded);
    return life ? impl_mark(s, s->env->compute, &life->died) : FSDP_OK;
}

static int pack_each(struct fsdp_sharded *s, uint32_t u)
{
    const struct impl_index *of = &s->of_unit;
    const struct impl_dtypes *d = &s->unit[u].dtype;

    for (uint32_t i = of->first[u]; i < of->first[u + 1]; i++) {
        const struct impl_parameter *x = &s->parameter[of->parameter[i]];

        if (!x->frozen) {
            FSDP_TRY(d->accumulate == d->reduce ? pack(s, x) : pack_cast(s, x));
        }
    }
    return fill_padding(s, u);
}

int impl_pack(struct fsdp_sharded *s, uint32_t u, struct impl_life *life)
{
    struct impl_unit *x = &s->unit[u];

    FSDP_TRY(impl_complete(s, u));
    x->packed_life = life;
    FSDP_TRY(impl_take(s, s->env->compute,
                       (struct impl_value){FSDP_STAGING, u, x->dtype.reduce,
                                           x->grad_padded, false},
                       impl_slot(&s->wire, life->offset), &x->packed));
    FSDP_TRY(s->packs ? pack_each(s, u)
                      : cast_range(s, u, 0, 0, x->grad_padded));
    impl_dead(s, s->env->compute, &x->grad, x->grad_whole);
    return FSDP_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_offload.c - what rests on the host. A shard is copied to the device for
 * each window, on a stream of its own, as far ahead as it is gathered; what a
 * reduction makes is copied back on another one, and added up where states are
 * when its place in flight is needed, or when a call asks for it. The host
 * works on no stream: it waits for copies, and what it does is over before the
 * next one is issued.
 */
#include "impl_calls.h"

/* ---- What is asked for --------------------------------------------------- */

static const uint32_t BITS =
    FSDP_OFFLOAD_ALL | FSDP_OFFLOAD_OPTIMIZER | FSDP_OFFLOAD_PARAMS;

/* Whether a unit's own entry is valid: OWN and bits, all (1), or nothing
 * (2). */
static bool is_said(uint32_t own)
{
    return own & FSDP_OFFLOAD_OWN ? !(own & ~(BITS | FSDP_OFFLOAD_OWN))
                                  : own <= 2;
}

uint32_t impl_offload_of(const struct fsdp_units *units,
                         const struct fsdp_options *o, uint32_t u)
{
    const uint32_t own = units->offload ? units->offload[u] : 0;
    uint32_t bits = o->offload;

    if (own & FSDP_OFFLOAD_OWN) {
        bits = own & ~(uint32_t)FSDP_OFFLOAD_OWN;
    } else if (own) {
        bits = own == 1 ? FSDP_OFFLOAD_ALL : 0;
    }
    return bits & FSDP_OFFLOAD_ALL
               ? FSDP_OFFLOAD_OPTIMIZER | FSDP_OFFLOAD_PARAMS
               : bits;
}

int impl_offload_check(const struct fsdp_env *env,
                       const struct fsdp_units *units,
                       const struct fsdp_options *o)
{
    if (o->offload & ~BITS) {
        return impl_fail(env, FSDP_ERR_INVALID, "impl.shard",
                         "offload %u has other bits than all (1), optimizer "
                         "(2), parameters (4)",
                         o->offload);
    }
    for (uint32_t u = 0; u < units->n_units; u++) {
        const uint32_t own = units->offload ? units->offload[u] : 0;

        if (!is_said(own)) {
            return impl_fail(env, FSDP_ERR_INVALID, "impl.shard",
                             "offload %u of unit %u is none of as the option "
                             "(0), all (1), nothing (2), bits of its own (8 "
                             "and any of 1, 2, 4)",
                             own, u);
        }
        if (impl_offload_of(units, o, u) && !fsdp_host_of(env)) {
            return impl_fail(env, FSDP_ERR_UNSUPPORTED, "impl.shard",
                             "offload of unit %u: there is no host device", u);
        }
    }
    return FSDP_OK;
}

/* ---- Shards -------------------------------------------------------------- */

/* In the slot, or its second part. */
static void *brought_slot(const struct fsdp_sharded *s, bool second)
{
    return impl_slot(&s->brought, second ? s->brought_room[0] : 0);
}

static int copy_shard(struct fsdp_sharded *s, uint32_t u, void *to)
{
    struct impl_unit *x = &s->unit[u];

    FSDP_TRY(
        impl_copy(s, s->bringing, to, x->shard, x->chunk * sizeof(*x->shard)));
    return impl_mark(s, s->bringing, &x->brought_at);
}

int impl_bring(struct fsdp_sharded *s, struct fsdp_stream *stream, uint32_t u,
               uint32_t dtype, void *to)
{
    struct impl_unit *x = &s->unit[u];

    if (dtype == FSDP_DTYPE_F32) {
        FSDP_TRY(copy_shard(s, u, to));
        return impl_wait(s, stream, s->bringing, 0, "host->device");
    }
    if (s->brought_done > 0) {
        FSDP_TRY(impl_wait(s, s->bringing, s->brought_by, s->brought_done,
                           "cast->reuse"));
    }
    FSDP_TRY(impl_take(
        s, s->bringing,
        (struct impl_value){FSDP_STAGING, u, FSDP_DTYPE_F32, x->chunk, false},
        brought_slot(s, false), &x->brought));
    FSDP_TRY(copy_shard(s, u, x->brought));
    FSDP_TRY(impl_wait(s, stream, s->bringing, 0, "host->device"));
    FSDP_TRY(impl_cast(s, stream,
                       &(struct impl_cast){.unit = u,
                                           .from_dtype = FSDP_DTYPE_F32,
                                           .to_dtype = dtype,
                                           .from = x->brought,
                                           .to = to,
                                           .n = x->chunk}));
    impl_dead(s, stream, &x->brought, x->chunk);
    s->brought_by = stream;
    return impl_mark(s, stream, &s->brought_done);
}

/* ---- Results of reductions ----------------------------------------------- */

/* Whether the result becomes the gradient as it is, without a sum or a cast. */
static bool is_kept(const struct impl_unit *x)
{
    return !x->grad_shard && x->dtype.reduce == FSDP_DTYPE_F32;
}

static int take_gradient(struct fsdp_sharded *s, uint32_t u, void *slot)
{
    struct impl_unit *x = &s->unit[u];
    void *p;

    FSDP_TRY(impl_take(s, NULL,
                       (struct impl_value){FSDP_GRAD_SHARD, u, FSDP_DTYPE_F32,
                                           x->grad_chunk, true},
                       slot, &p));
    x->grad_shard = p;
    return FSDP_OK;
}

static void *gradient_slot(const struct fsdp_sharded *s, uint32_t u)
{
    return impl_slot(&s->host_grads, s->unit[u].own_grad_shard);
}

/* The next place for a result on the host; as many lie side by side as may be
 * in flight. */
static void *next_slot(struct fsdp_sharded *s)
{
    const uint32_t most = s->options.reduces_in_flight;
    const uint64_t at = s->borrowed_room + s->next_landed * s->landed_room;

    s->next_landed = s->next_landed + 1 < most ? s->next_landed + 1 : 0;
    return impl_slot(&s->host_staging, at);
}

/* Where a result is copied to. A gradient that is stepped as soon as it is
 * there needs its place only briefly, like a result that is added to another
 * one. */
static int take_landed(struct fsdp_sharded *s, uint32_t u)
{
    struct impl_unit *x = &s->unit[u];

    if (!is_kept(x)) {
        return impl_take(s, NULL,
                         (struct impl_value){FSDP_STAGING, u, x->dtype.reduce,
                                             x->grad_chunk, true},
                         next_slot(s), &x->landed);
    }
    return take_gradient(
        s, u, impl_steps_early(s, u) ? next_slot(s) : gradient_slot(s, u));
}

int impl_land(struct fsdp_sharded *s, uint32_t u, void **sum)
{
    struct impl_unit *x = &s->unit[u];

    FSDP_TRY(take_landed(s, u));
    FSDP_TRY(impl_wait(s, s->landing, s->last, 0, "reduce->copy"));
    FSDP_TRY(impl_copy(s, s->landing, x->landed ? x->landed : x->grad_shard,
                       *sum,
                       x->grad_chunk * fsdp_dtype_bytes(x->dtype.reduce)));
    impl_dead(s, s->landing, sum, x->grad_chunk);
    x->landing = true;
    x->steps_landed = impl_steps_early(s, u);
    return impl_mark(s, s->landing, &x->landed_at);
}

/* Widened: the first is the gradient, a later one is added. */
static int add_landed(struct fsdp_sharded *s, uint32_t u)
{
    struct impl_unit *x = &s->unit[u];

    if (x->grad_shard) {
        FSDP_TRY(impl_add(s, NULL,
                          &(struct impl_sum){.unit = u,
                                             .to_dtype = FSDP_DTYPE_F32,
                                             .dtype = x->dtype.reduce,
                                             .to = x->grad_shard,
                                             .what = x->landed,
                                             .n = x->grad_chunk,
                                             .on_host = true}));
    } else {
        FSDP_TRY(take_gradient(s, u, gradient_slot(s, u)));
        FSDP_TRY(impl_cast(s, NULL,
                           &(struct impl_cast){.unit = u,
                                               .from_dtype = x->dtype.reduce,
                                               .to_dtype = FSDP_DTYPE_F32,
                                               .from = x->landed,
                                               .to = x->grad_shard,
                                               .n = x->grad_chunk,
                                               .on_host = true}));
    }
    impl_over_at(s, true, NULL, x->landed, x->grad_chunk);
    x->landed = NULL;
    return FSDP_OK;
}

int impl_landed(struct fsdp_sharded *s, uint32_t u)
{
    struct impl_unit *x = &s->unit[u];

    if (!x->landing) {
        return FSDP_OK;
    }
    x->landing = false;
    FSDP_TRY(impl_wait(s, NULL, s->landing, x->landed_at, "device->host"));
    if (x->landed) {
        FSDP_TRY(add_landed(s, u));
    }
    if (x->steps_landed) {
        FSDP_TRY(impl_step_early(s, u));
        impl_over_at(s, true, NULL, x->grad_shard, x->grad_chunk);
        x->grad_shard = NULL;
    }
    return FSDP_OK;
}

int impl_landed_all(struct fsdp_sharded *s)
{
    for (uint32_t u = 0; s->lands && u < s->units.n_units; u++) {
        FSDP_TRY(impl_landed(s, u));
    }
    return FSDP_OK;
}

/* ---- The step ------------------------------------------------------------ */

/* Waits for the last copy of the shard to the device, which still reads it. */
static int wait_for_readers(struct fsdp_sharded *s, uint32_t u)
{
    struct impl_unit *x = &s->unit[u];

    if (x->shard_on_host && x->brought_at > 0) {
        FSDP_TRY(
            impl_wait(s, NULL, s->bringing, x->brought_at, "host->device"));
        x->brought_at = 0;
    }
    return FSDP_OK;
}

int impl_borrow(struct fsdp_sharded *s, struct fsdp_stream *stream, uint32_t u)
{
    struct impl_unit *x = &s->unit[u];
    const struct impl_value what = {FSDP_STAGING, u, FSDP_DTYPE_F32, x->chunk,
                                    x->step_on_host};
    const uint64_t bytes = x->chunk * sizeof(*x->shard);
    void *p;

    if (x->step_on_host && x->shard_on_host) {
        return wait_for_readers(s, u);
    }
    if (x->shard_on_host == x->step_on_host) {
        return FSDP_OK;
    }
    FSDP_TRY(impl_take(s, stream, what,
                       x->step_on_host ? impl_slot(&s->host_staging, 0)
                                       : brought_slot(s, true),
                       &p));
    x->borrowed = p;
    if (!x->step_on_host) {
        return impl_copy(s, stream, p, x->shard, bytes);
    }
    FSDP_TRY(impl_copy(s, s->landing, p, x->shard, bytes));
    return impl_wait(s, NULL, s->landing, 0, "device->host");
}

int impl_return(struct fsdp_sharded *s, struct fsdp_stream *stream, uint32_t u)
{
    struct impl_unit *x = &s->unit[u];
    const uint64_t bytes = x->chunk * sizeof(*x->shard);

    if (!x->borrowed) {
        return FSDP_OK;
    }
    FSDP_TRY(impl_copy(s, x->step_on_host ? s->bringing : stream, x->shard,
                       x->borrowed, bytes));
    if (x->step_on_host) {
        FSDP_TRY(impl_wait(s, NULL, s->bringing, 0, "host->device"));
    }
    impl_over_at(s, x->step_on_host, stream, x->borrowed, x->chunk);
    x->borrowed = NULL;
    return FSDP_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_values.c - a state dict in rank 0's memory. Rank 0 sends one unit after
 * the other: at once all parameters of the unit that it has values of. Only a
 * call that is not refused takes memory for that, and takes all of it before
 * anything changes.
 */
#include "impl_checkpoint.h"

#include <stdlib.h>

enum {
    BITS = 64
};

/* What a rank tells the others; in a lenient call rank 0 then tells which
 * parameters it has. */
struct told {
    uint32_t lenient, has_values;
    uint64_t lacking; /* the first parameter without values, if any */
};

struct sending {
    struct fsdp_sharded *s;
    const struct fsdp_values *from;
    struct told *all; /* [world] */
    uint64_t *has;    /* a bit a parameter: rank 0 has values of it */
    void *staged;     /* [most] */
    uint64_t most;    /* elements of the largest unit */
};

static bool is_asked(const struct sending *x, uint32_t p)
{
    const struct impl_parameter *of = &x->s->parameter[p];

    return !impl_is_ignored(x->s, p) && of->original == p;
}

static bool has(const struct sending *x, uint32_t p)
{
    return (x->has[p / BITS] >> p % BITS & 1) != 0;
}

static int prepare(struct sending *x)
{
    const struct fsdp_sharded *s = x->s;
    const uint32_t n = s->model->n_parameters;

    x->all = calloc(s->env->world, sizeof(*x->all));
    x->has = calloc(n / BITS + 1, sizeof(*x->has));
    if (!x->all || !x->has) {
        return FSDP_ERR_NOMEM;
    }
    for (uint32_t p = 0; p < n && x->from->value; p++) {
        x->has[p / BITS] |= (uint64_t)(x->from->value[p] != NULL) << p % BITS;
    }
    return FSDP_OK;
}

/* A stream may still be at work where the staged values will lie. */
static int stage(struct sending *x)
{
    const struct fsdp_device *d = x->s->env->device;
    const struct impl_value staging = {
        .kind = FSDP_STAGING, .dtype = FSDP_DTYPE_F32, .n = x->most};

    FSDP_TRY(d->sync(d->self, NULL));
    return impl_take(x->s, NULL, staging, NULL, &x->staged);
}

/* Judges the call by what all ranks have told. */
static int judge(const struct sending *x)
{
    static const char where[] = "impl.send_values";
    const struct fsdp_env *env = x->s->env;
    const struct told *of0 = &x->all[0];

    for (uint32_t r = 1; r < env->world; r++) {
        const bool differs = x->all[r].lenient != of0->lenient;

        if (differs || x->all[r].has_values) {
            return impl_fail(env, FSDP_ERR_MISMATCH, where,
                             "%s on rank %u, and rank 0 %s",
                             differs ? "lenient is another" : "value is there",
                             r, differs ? "differs" : "alone may have it");
        }
    }
    if (!of0->has_values) {
        return impl_fail(env, FSDP_ERR_INVALID, where,
                         "value is NULL on rank 0, which has to have it");
    }
    return of0->lenient || of0->lacking >= x->s->model->n_parameters
               ? FSDP_OK
               : impl_fail(env, FSDP_ERR_INVALID, where,
                           "no value of %s on rank 0: only a lenient call "
                           "leaves it out",
                           x->s->model->parameter_name[of0->lacking]);
}

static int tell_all(struct sending *x, const struct told *told)
{
    const struct fsdp_env *env = x->s->env;

    return env->exchange(env->exchange_self, told, sizeof(*told), x->all);
}

static int agree(struct sending *x)
{
    const uint32_t n = x->s->model->n_parameters;
    struct told told = {x->from->lenient, x->from->value != NULL, 0};

    while (told.lacking < n && (has(x, (uint32_t)told.lacking) ||
                                !is_asked(x, (uint32_t)told.lacking))) {
        told.lacking++;
    }
    FSDP_TRY(tell_all(x, &told));
    FSDP_TRY(judge(x));
    for (uint32_t i = 0; i <= n / BITS; i++) {
        told.lacking = x->has[i];
        if (x->from->lenient) {
            FSDP_TRY(tell_all(x, &told));
            x->has[i] = x->all[0].lacking;
        } else {
            x->has[i] = UINT64_MAX;
        }
    }
    return FSDP_OK;
}

/* Calls back for each parameter of the unit that rank 0 has values of; it lies
 * at `at` in the staged values. */
static int each(const struct sending *x, uint32_t u,
                int (*what)(const struct sending *x, uint32_t p, float *at),
                uint64_t *n)
{
    const struct impl_index *of = &x->s->of_unit;
    float *at = x->staged;

    for (uint32_t i = of->first[u]; i < of->first[u + 1]; i++) {
        const uint32_t p = of->parameter[i];

        if (has(x, p) && x->s->parameter[p].numel > 0) {
            FSDP_TRY(what(x, p, at));
            at += x->s->parameter[p].numel;
        }
    }
    *n = (uint64_t)(at - (float *)x->staged);
    return FSDP_OK;
}

static int read(const struct sending *x, uint32_t p, float *at)
{
    return x->s->env->rank == 0
               ? impl_copy(x->s, NULL, at, x->from->value[p],
                           x->s->parameter[p].numel * sizeof(*at))
               : FSDP_OK;
}

static int keep(const struct sending *x, uint32_t p, float *at)
{
    const struct impl_parameter *of = &x->s->parameter[p];

    if (of->n == 0) {
        return FSDP_OK;
    }
    impl_has_values(x->s, of->unit, of->local, of->n);
    return impl_copy(x->s, NULL, x->s->unit[of->unit].shard + of->local,
                     at + of->first, of->n * sizeof(*at));
}

static int send(const struct sending *x, uint32_t u)
{
    uint64_t n;

    FSDP_TRY(each(x, u, read, &n));
    if (n > 0 && x->s->env->world > 1) {
        FSDP_TRY(impl_broadcast(x->s, u, x->staged, n));
    }
    return each(x, u, keep, &n);
}

static int send_all(struct sending *x)
{
    struct fsdp_sharded *s = x->s;

    FSDP_TRY(impl_reshard_kept(s));
    s->loaded = true; /* a load that fails must restore these values */
    for (uint32_t u = 0; u < s->units.n_units; u++) {
        FSDP_TRY(send(x, u));
    }
    return FSDP_OK;
}

int impl_send_values(struct fsdp_sharded *s, const struct fsdp_values *from)
{
    static const char where[] = "impl.send_values";
    static const char no_memory[] = "there is no memory for it";
    struct sending x = {.s = s, .from = from};
    int status;

    FSDP_TRY(impl_at_rest(s, where));
    for (uint32_t u = 0; u < s->units.n_units; u++) {
        x.most = s->unit[u].numel > x.most ? s->unit[u].numel : x.most;
    }
    status = checkpoint_agree(s->env, where, prepare(&x), no_memory);
    if (status == FSDP_OK) {
        status = agree(&x);
    }
    if (status == FSDP_OK) {
        status = checkpoint_agree(s->env, where, stage(&x), no_memory);
    }
    if (status == FSDP_OK) {
        status = send_all(&x);
    }
    if (x.staged) {
        impl_dead(s, NULL, &x.staged, x.most);
    }
    free(x.has);
    free(x.all);
    return status;
}

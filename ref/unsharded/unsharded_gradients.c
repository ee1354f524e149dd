/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unsharded_gradients.c - what each rank's passes leave behind: of each unit
 * the sum over microbatches, closed where it would be reduced, until the fold
 * (unsharded_shard.c) has taken it.
 */
#include "unsharded.h"

#include <fsdp/arith/cast.h>
#include <stdlib.h>
#include <string.h>

/* ---- Storage ------------------------------------------------------------ */

static int make_rank(const struct fsdp_sharded *s, struct rank_gradients *x)
{
    const size_t n_u = s->units->n_units + (size_t)1;

    x->has = calloc(s->model->n_parameters + (size_t)1, sizeof(*x->has));
    x->n = calloc(n_u, sizeof(*x->n));
    x->open = calloc(n_u, sizeof(*x->open));
    x->sync = calloc(n_u, sizeof(*x->sync));
    if (!x->has || !x->n || !x->open || !x->sync) {
        return FSDP_ERR_NOMEM;
    }
    memset(x->sync, true, n_u * sizeof(*x->sync));
    return FSDP_OK;
}

void unsharded_find_trained(struct fsdp_sharded *s)
{
    for (uint32_t u = 0; u < s->units->n_units; u++) {
        bool any = false;
        s->trains[u] = false;
        for (uint32_t p = 0; p < s->model->n_parameters; p++) {
            if (unsharded_unit(s, p) == u) {
                any = true;
                s->trains[u] = s->trains[u] || !unsharded_is_frozen(s, p);
            }
        }
        s->trains[u] = s->trains[u] || !any;
    }
}

int unsharded_make_gradients(struct fsdp_sharded *s)
{
    const size_t n_u = s->units->n_units + (size_t)1;

    s->folded = calloc(n_u, sizeof(*s->folded));
    s->shown = calloc(n_u, sizeof(*s->shown));
    s->trains = calloc(n_u, sizeof(*s->trains));
    s->sync = calloc(n_u, sizeof(*s->sync));
    s->all_reduce = calloc(n_u, sizeof(*s->all_reduce));
    s->next_all_reduce = calloc(n_u, sizeof(*s->next_all_reduce));
    s->backwards = calloc(n_u, sizeof(*s->backwards));
    s->rank = calloc(s->ranks, sizeof(*s->rank));
    if (!s->folded || !s->shown || !s->trains || !s->sync || !s->all_reduce ||
        !s->next_all_reduce || !s->backwards || !s->rank) {
        return FSDP_ERR_NOMEM;
    }
    memset(s->next_all_reduce, true, n_u * sizeof(*s->next_all_reduce));
    unsharded_find_trained(s);
    for (uint32_t r = 0; r < s->ranks; r++) {
        FSDP_TRY(make_rank(s, &s->rank[r]));
    }
    return FSDP_OK;
}

void unsharded_free_gradients(struct fsdp_sharded *s)
{
    for (uint32_t r = 0; s->rank && r < s->ranks; r++) {
        struct rank_gradients *x = &s->rank[r];
        for (uint32_t c = 0; c < x->room; c++) {
            unsharded_drop(s, &x->of[c].sum);
            free(x->of[c].completes);
            free(x->of[c].factor);
        }
        free(x->of);
        free(x->has);
        free(x->n);
        free(x->open);
        free(x->sync);
    }
    free(s->folded);
    free(s->shown);
    free(s->trains);
    free(s->sync);
    free(s->all_reduce);
    free(s->next_all_reduce);
    free(s->backwards);
    free(s->rank);
}

void unsharded_drop_gradients(struct fsdp_sharded *s)
{
    const uint32_t n_u = s->units->n_units;

    for (uint32_t r = 0; r < s->ranks; r++) {
        struct rank_gradients *x = &s->rank[r];
        for (uint32_t c = 0; c < x->room; c++) {
            unsharded_drop(s, &x->of[c].sum);
        }
        memset(x->n, 0, n_u * sizeof(*x->n));
        memset(x->open, 0, n_u * sizeof(*x->open));
        memset(x->has, 0, s->model->n_parameters * sizeof(*x->has));
    }
    memset(s->folded, 0, n_u * sizeof(*s->folded));
    memset(s->touched, 0, n_u * sizeof(*s->touched));
    memset(s->asked, 0, s->model->n_parameters * sizeof(*s->asked));
    s->has_reduced = false;
}

/* ---- What there is ------------------------------------------------------ */

uint32_t unsharded_n_complete(const struct fsdp_sharded *s,
                              const struct rank_gradients *x, uint32_t unit)
{
    uint32_t n = x->n[unit];

    (void)s;
    while (n > 0 && !x->of[n - 1].completes[unit]) {
        n--;
    }
    return n;
}

bool unsharded_is_pending(const struct fsdp_sharded *s)
{
    for (uint32_t r = 0; r < s->ranks; r++) {
        const struct rank_gradients *x = &s->rank[r];

        for (uint32_t u = 0; u < s->units->n_units; u++) {
            if (x->open[u] || unsharded_n_complete(s, x, u) < x->n[u]) {
                return true;
            }
        }
    }
    return false;
}

bool unsharded_has_gradients(const struct fsdp_sharded *s)
{
    bool any = s->has_reduced || unsharded_is_pending(s);

    for (uint32_t u = 0; u < s->units->n_units; u++) {
        any = any || s->rank[0].n[u] > 0;
    }
    return any;
}

/* ---- One pass of one rank ----------------------------------------------- */

void unsharded_begin_pass(struct fsdp_sharded *s)
{
    const struct rank_gradients *x = &s->rank[s->env->rank];

    for (uint32_t u = 0; u < s->units->n_units; u++) {
        s->sync[u] = x->sync[u];
        s->all_reduce[u] = s->next_all_reduce[u] || s->replicas == 1;
        s->factor[u] = ref_factors(s->divisors[u]);
        s->backwards[u] = false;
    }
}

/* Room for one contribution more. */
static int grow(struct fsdp_sharded *s, struct rank_gradients *x)
{
    const size_t n_u = s->units->n_units + (size_t)1;
    struct contribution *grown =
        realloc(x->of, (x->room + (size_t)1) * sizeof(*grown));

    if (!grown) {
        return FSDP_ERR_NOMEM;
    }
    x->of = grown;
    grown += x->room;
    *grown = (struct contribution){.completes = calloc(n_u, sizeof(bool)),
                                   .factor = calloc(n_u, sizeof(*s->factor))};
    x->room++;
    return grown->completes && grown->factor ? FSDP_OK : FSDP_ERR_NOMEM;
}

/* Begins the unit's part of a contribution, with +0 everywhere. */
static int open_unit(struct fsdp_sharded *s, struct rank_gradients *x,
                     uint32_t u)
{
    struct contribution *to;

    if (x->n[u] == x->room && grow(s, x) != FSDP_OK) {
        return ref_fail(s->env, FSDP_ERR_NOMEM, "unsharded", "out of memory");
    }
    to = &x->of[x->n[u]];
    if (!to->sum) {
        FSDP_TRY(unsharded_take(s, FSDP_GRAD_FULL, &to->sum));
    }
    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        if (unsharded_unit(s, p) == u) {
            memset(to->sum + s->start[p], 0,
                   fsdp_numel(s->model, p) * sizeof(*to->sum));
            x->has[p] = false;
        }
    }
    x->open[u] = true;
    return FSDP_OK;
}

/* The first gradient is kept; later ones are added, and rounded to the dtype of
 * sums over microbatches. */
int unsharded_take_gradients(struct fsdp_sharded *s, uint32_t module)
{
    struct rank_gradients *x = &s->rank[s->env->rank];

    for (uint32_t u = 0; u < s->units->n_units; u++) {
        if (s->trains[u] && !x->open[u] && unsharded_is_of(s, module, u)) {
            FSDP_TRY(open_unit(s, x, u));
        }
    }
    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        const uint32_t original = fsdp_original(s->model, p);
        const struct ref_dtypes *d;
        uint32_t u;
        float *sum;
        if (s->model->parameter_module[p] != module || !s->asked[p]) {
            continue;
        }
        u = unsharded_unit(s, p);
        d = &s->dtype[u];
        sum = x->of[x->n[u]].sum + s->start[original];
        for (uint64_t i = 0; i < fsdp_numel(s->model, p); i++) {
            const float g = fsdp_load(d->grad, s->fresh + s->start[p], i);
            sum[i] =
                fsdp_round(d->accumulate, x->has[original] ? sum[i] + g : g);
        }
        x->has[original] = true;
        s->asked[p] = false;
    }
    return FSDP_OK;
}

/* Closes a unit's contribution where it would be reduced. A pending
 * contribution stays pending over a pass without a backward of the unit. */
void unsharded_end_pass(struct fsdp_sharded *s)
{
    struct rank_gradients *x = &s->rank[s->env->rank];

    for (uint32_t u = 0; u < s->units->n_units; u++) {
        if (s->sync[u] && s->backwards[u] && x->open[u]) {
            x->of[x->n[u]].factor[u] = s->factor[u];
            x->of[x->n[u]++].completes[u] = s->all_reduce[u];
            x->open[u] = false;
        }
    }
}

/* ---- It was folded ------------------------------------------------------ */

static void move_unit(const struct fsdp_sharded *s, uint32_t u,
                      const struct contribution *from, struct contribution *to)
{
    to->completes[u] = from->completes[u];
    to->factor[u] = from->factor[u];
    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        if (unsharded_unit(s, p) == u) {
            memcpy(to->sum + s->start[p], from->sum + s->start[p],
                   fsdp_numel(s->model, p) * sizeof(*to->sum));
        }
    }
}

/* The storage is freed once no unit has anything left in it. */
void unsharded_forget(struct fsdp_sharded *s, struct rank_gradients *x,
                      uint32_t unit, uint32_t n)
{
    bool any = false;

    for (uint32_t c = n; n > 0 && c < x->n[unit] + x->open[unit]; c++) {
        move_unit(s, unit, &x->of[c], &x->of[c - n]);
    }
    x->n[unit] -= n;
    for (uint32_t u = 0; u < s->units->n_units; u++) {
        any = any || x->n[u] > 0 || x->open[u];
    }
    for (uint32_t c = 0; c < x->room && !any; c++) {
        unsharded_drop(s, &x->of[c].sum);
    }
}

/* ---- What is done with one unit and not with another -------------------- */

/* Of this rank alone: the passes of other ranks are played before or after. */
int unsharded_set_gradient_sync(struct fsdp_sharded *s, uint32_t on)
{
    return unsharded_set(s, FSDP_NO_UNIT, FSDP_KNOB_GRADIENT_SYNC,
                         on != 0 ? 1.0f : 0.0f);
}

int unsharded_set(struct fsdp_sharded *s, uint32_t unit, uint32_t knob,
                  float value)
{
    for (uint32_t u = 0; u < s->units->n_units; u++) {
        if (unit != FSDP_NO_UNIT && unit != u) {
            continue;
        }
        if (knob == FSDP_KNOB_GRADIENT_SYNC) {
            s->rank[s->env->rank].sync[u] = value != 0.0f;
        } else if (knob == FSDP_KNOB_ALL_REDUCE) {
            s->next_all_reduce[u] = value != 0.0f;
        } else if (knob == FSDP_KNOB_DIVIDE_FACTOR) {
            s->divisors[u].divide = value;
        } else if (knob == FSDP_KNOB_PREDIVIDE_FACTOR) {
            s->divisors[u].predivide = value;
        }
    }
    return FSDP_OK;
}

/* The baseline holds everything, so that there is nothing to gather, and no
 * copy that could be old. Within a pass nothing is shown, since the values may
 * have changed when the pass has ended. */
int unsharded_unshard(struct fsdp_sharded *s, uint32_t unit)
{
    s->shown[unit] = !s->sequence;
    return FSDP_OK;
}

int unsharded_reshard(struct fsdp_sharded *s, uint32_t unit)
{
    s->shown[unit] = false;
    return FSDP_OK;
}

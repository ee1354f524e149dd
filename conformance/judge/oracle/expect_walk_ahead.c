/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expect_walk_ahead.c - what the options of running ahead may add to the peaks
 * of a walk that does not: units that are gathered early, reductions that are
 * still in flight.
 */
#include "judge/oracle/expect_walk_units.h"

/* What of a unit counts where an engine runs ahead. */
enum ahead {
    AHEAD_WIRE,     /* its parameters on the wire */
    AHEAD_GRADIENT, /* its unsharded gradient */
    AHEAD_SENT,     /* that as it is reduced, whatever it lies in */
    AHEAD_BROUGHT,  /* its shard, from the host, that is to be cast */
    AHEAD_LANDED,   /* on the host, what is to be added or widened there */
};

static uint64_t size_of(const struct expect_unit *x, enum ahead what)
{
    const struct expect_dtypes *d = &x->dtype;
    const uint64_t sent = expect_walk_bytes(d->reduce, x->grad_padded);
    const uint64_t summed = expect_walk_bytes(d->accumulate, x->grad_padded);

    switch (what) {
    case AHEAD_WIRE:
        return expect_walk_bytes(d->param, x->padded);
    case AHEAD_GRADIENT:
        return expect_walk_bytes(d->accumulate, x->grad_whole);
    case AHEAD_BROUGHT:
        return x->shard_on_host && d->param != FSDP_DTYPE_F32
                   ? expect_walk_bytes(FSDP_DTYPE_F32, x->chunk)
                   : 0;
    case AHEAD_LANDED:
        return x->step_on_host ? expect_walk_bytes(d->reduce, x->grad_chunk)
                               : 0;
    default:
        return sent > summed ? sent : summed;
    }
}

/* Bytes of the `n` largest units. */
static uint64_t largest_units(const struct expect *e, uint32_t n,
                              enum ahead what)
{
    uint64_t sum = 0;
    uint64_t below = UINT64_MAX;

    while (n > 0) {
        uint64_t best = 0;
        uint32_t times = 0;

        for (uint32_t u = 0; u < e->units->n_units; u++) {
            uint64_t size = size_of(&e->unit[u], what);

            if (size < below && size > best) {
                best = size;
                times = 0;
            }
            times += size == best ? 1 : 0;
        }
        if (best == 0) {
            break;
        }
        times = times < n ? times : n;
        sum += times * best;
        n -= times;
        below = best;
    }
    return sum;
}

static uint64_t at_most(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* What running ahead may add: the unsharded parameters of units that are
 * gathered early, as the walk has counted them; the unsharded gradients, never
 * more than all units have, and the results of the reductions in flight. Where
 * an engine packs, each of the first two may be on the wire instead. What is
 * copied from the host, or to it, lies in staging as much earlier, or later. */
void expect_walk_allow_ahead(const struct expect *e, struct walk *w)
{
    const struct fsdp_options *o = &e->options;
    const uint32_t depth =
        (uint32_t)larger(o->prefetch_forward, o->prefetch_backward);
    const uint32_t ahead = e->shards > 1 ? depth : 0;
    const uint32_t flying = o->reduces_in_flight;
    const uint64_t all_grads =
        largest_units(e, e->units->n_units, AHEAD_GRADIENT);
    const uint64_t grads = largest_units(e, flying, AHEAD_GRADIENT);
    const uint64_t gathered = largest_units(e, ahead, AHEAD_WIRE);
    const uint64_t sent = largest_units(e, flying, AHEAD_SENT);
    const uint64_t brought = largest_units(e, ahead, AHEAD_BROUGHT);
    bool casts = false; /* what is sent is staging, as it is where one packs */

    for (uint32_t u = 0; u < e->units->n_units; u++) {
        casts = casts || e->unit[u].dtype.accumulate != e->unit[u].dtype.reduce;
    }

    w->peak[FSDP_PARAM_FULL] = larger(w->peak[FSDP_PARAM_FULL], w->early_full);
    w->peak_parameters = larger(w->peak_parameters, w->early_parameters);
    w->peak[FSDP_GRAD_FULL] +=
        at_most(grads, all_grads - w->peak[FSDP_GRAD_FULL]);
    w->peak[FSDP_STAGING] += sent / e->shards + brought;
    w->peak[RECORD_HOST + FSDP_STAGING] +=
        largest_units(e, flying, AHEAD_LANDED);
    w->peak[FSDP_STAGING] += e->packs ? gathered : 0;
    w->peak[FSDP_STAGING] += e->packs || casts ? sent : 0;
    w->peak_engine = e->packs ? w->peak_engine + gathered
                              : larger(w->peak_engine, w->early_engine);
    w->peak_engine += sent + sent / e->shards + brought;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay_mixed.c - the replay of a reduction with one of its roundings made
 * otherwise. An engine that has exactly those values has that fault, and a
 * reader of the report need not look for the moment.
 */
#include "judge/replay/replay_mixed.h"

#include <fsdp/arith/cast.h>
#include <string.h>

enum scaling {
    SCALED_ON_WIRE = 0, /* as it should be: rounded to the wire's dtype */
    SCALED_FIRST,       /* before ranks are added up */
    SCALED_WIDE,        /* behind the wire, in float32 */
};

struct roundings {
    uint32_t moment;
    uint32_t accumulate, sent, sum, between, kept; /* dtypes */
    bool late; /* sums over microbatches are rounded once, at their end */
    uint32_t scaling;
    const char *words;
};

/* `right` says where the element lies; `reduction` has one unit, its own, with
 * the dtypes of the mistake. */
static float reduced(const struct replay_reduction *right,
                     const struct replay_reduction *reduction,
                     const struct roundings *how, uint64_t i)
{
    const struct expect *const e = reduction->e;
    const uint32_t wire = e->unit[reduction->unit].dtype.reduce;
    const struct run_case *c = e->c;
    const uint64_t place =
        expect_place_of_gradient(right->e, right->parameter, right->first + i);
    const struct expect_factors f = reduction->factor;
    const float before = how->scaling == SCALED_FIRST ? f.behind : 1.0f;
    const float behind = how->scaling == SCALED_FIRST ? 1.0f : f.behind;
    float pending[WORLD_MAX_RANKS] = {0};
    float kept = 0.0f;
    bool is_pending = false;
    bool is_kept = false;

    for (uint32_t b = 0; b < c->microbatches; b++) {
        float g;

        replay_accumulate(reduction, b, i, pending, &is_pending);
        if (c->sync[b] == 0) {
            continue;
        }
        for (uint32_t k = 0; k < c->ranks && k < WORLD_MAX_RANKS; k++) {
            const float sum = how->late
                                  ? fsdp_round(how->accumulate, pending[k])
                                  : pending[k];
            const float x = fsdp_round(how->accumulate, sum * f.before);

            pending[k] = fsdp_round(
                wire, fsdp_round(how->sent, fsdp_round(wire, x) * before));
        }
        g = expect_fold(e, reduction->unit, place, pending) * behind;
        g = how->scaling == SCALED_WIDE ? g : fsdp_round(wire, g);
        kept = fsdp_round(how->kept, is_kept ? kept + g : g);
        is_kept = true;
        is_pending = false;
        memset(pending, 0, sizeof(pending));
    }
    return kept;
}

/* The reduction with the dtypes of the mistake in the place of the unit's;
 * `e` and `unit` are room for it. */
static struct replay_reduction
with_mistake(const struct replay_reduction *reduction,
             const struct roundings *how, struct expect *e,
             struct expect_unit *unit)
{
    struct replay_reduction x = *reduction;

    *unit = reduction->e->unit[reduction->unit];
    unit->dtype.accumulate = how->late ? FSDP_DTYPE_F32 : how->accumulate;
    unit->dtype.sum = how->sum;
    unit->dtype.between = how->between;
    *e = *reduction->e;
    e->unit = unit;
    x.e = e;
    x.unit = 0;
    return x;
}

static bool is_made(const struct replay_reduction *reduction,
                    const struct roundings *how, const float *got, uint64_t n)
{
    struct expect e;
    struct expect_unit unit;
    const struct replay_reduction x = with_mistake(reduction, how, &e, &unit);
    bool same = true;

    for (uint64_t i = 0; same && i < n; i++) {
        same = got[i] == reduced(reduction, &x, how, i);
    }
    return same;
}

enum {
    MOST_MISTAKES = 4 /* of a moment */
};

/* The roundings that may have been made in place of the right one. The right
 * one is among those with another dtype, and changes nothing. */
static uint32_t mistakes(const struct replay_reduction *reduction,
                         uint32_t moment, struct roundings how[MOST_MISTAKES])
{
    static const char *const other[] = {
        [REPLAY_ACCUMULATES] = "microbatches add up in another dtype",
        [REPLAY_SENDS] = "gradients were rounded to another dtype before they "
                         "were sent",
        [REPLAY_SUMS] = "sums over ranks were rounded otherwise",
        [REPLAY_KEEPS] = "reduced gradients add up in 16 bits"};
    const struct expect_dtypes *d = &reduction->e->unit[reduction->unit].dtype;
    const struct roundings usual = {.accumulate = d->accumulate,
                                    .sent = d->reduce,
                                    .sum = d->sum,
                                    .kept = FSDP_DTYPE_F32};
    uint32_t n = 0;

    for (uint32_t t = FSDP_DTYPE_F32;
         t <= FSDP_DTYPE_F16 && moment != REPLAY_SCALES; t++) {
        how[n] = usual;
        how[n].words = other[moment];
        how[n].accumulate = moment == REPLAY_ACCUMULATES ? t : d->accumulate;
        how[n].sent = moment == REPLAY_SENDS ? t : d->reduce;
        how[n].sum = moment == REPLAY_SUMS ? t : d->sum;
        how[n].kept = moment == REPLAY_KEEPS ? t : FSDP_DTYPE_F32;
        n++;
    }
    if (moment == REPLAY_ACCUMULATES) {
        how[n] = usual;
        how[n].late = true;
        how[n++].words = "microbatches add up in float32 and are rounded once";
    }
    if (moment == REPLAY_SUMS) {
        how[n] = usual;
        how[n].between = d->param;
        how[n++].words = "sums over shards were rounded to the parameter dtype "
                         "before replicas met";
    }
    if (moment == REPLAY_SCALES) {
        how[0] = how[1] = usual;
        how[0].scaling = SCALED_FIRST;
        how[0].words = "gradients were scaled before the ranks met";
        how[1].scaling = SCALED_WIDE;
        how[1].words = "the fold was scaled behind the wire, in float32";
        n = 2;
    }
    return n;
}

const char *replay_misrounded(const struct replay_reduction *reduction,
                              uint32_t moment, const float *got, uint64_t n)
{
    struct roundings how[MOST_MISTAKES];
    const uint32_t most = mistakes(reduction, moment, how);

    for (uint32_t h = 0; h < most; h++) {
        if (is_made(reduction, &how[h], got, n)) {
            return how[h].words;
        }
    }
    return NULL;
}

bool replay_misround(const struct replay_reduction *reduction, uint32_t moment,
                     float *values, uint64_t n)
{
    struct roundings how[MOST_MISTAKES];
    const uint32_t most = mistakes(reduction, moment, how);
    bool shows = false;

    for (uint32_t h = 0; h < most && !shows; h++) {
        struct expect e;
        struct expect_unit unit;
        const struct replay_reduction x =
            with_mistake(reduction, &how[h], &e, &unit);

        for (uint64_t i = 0; i < n; i++) {
            const float g = reduced(reduction, &x, &how[h], i);

            shows = shows || !(values[i] == g);
            values[i] = g;
        }
    }
    return shows;
}

const char *replay_rounded_master(const struct replay_optimizer *o,
                                  const struct replay_values *v, uint32_t dtype,
                                  uint64_t n)
{
    bool is_before = true;
    bool is_behind = true;

    for (uint64_t i = 0; i < n; i++) {
        struct replay_element x = {.weight = v->before[i]};
        struct replay_element y;

        for (uint32_t s = 0; s < v->n_states; s++) {
            x.state[s] = !v->state_before[s] ? 0.0f : v->state_before[s][i];
        }
        y = replay_step(o, x, v->gradient[i]);
        is_behind = is_behind && v->after[i] == fsdp_round(dtype, y.weight);
        x.weight = fsdp_round(dtype, x.weight);
        y = replay_step(o, x, v->gradient[i]);
        is_before = is_before && v->after[i] == y.weight;
    }
    return is_behind   ? "the new weights were rounded to the parameter dtype"
           : is_before ? "the step began at weights rounded to the parameter "
                         "dtype, not at the shard"
                       : NULL;
}

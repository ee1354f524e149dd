/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own_reduce.c - reduced gradients from the ranks' own: the mean of what each
 * rank's passes gave, added up in the wire's dtype in some order. Orders are
 * those of judge/replay/replay_orders.h; a part has one way of dividing. With
 * two ranks there is one order, and all elements are compared by the digest as
 * well.
 */
#include "judge/replay/replay_orders.h"
#include "tools/check/own_requirement.h"
#include <fsdp/arith/bf16.h>
#include <fsdp/arith/bits.h>

#include <stdio.h>

enum form {
    FORM_QUOTIENT = 0,      /* the sum, over K */
    FORM_PRODUCT = 1,       /* the sum, times fl(1 / K) */
    FORM_QUOTIENT_EACH = 2, /* each over K, then the sum */
    FORM_PRODUCT_EACH = 3,
    N_FORMS = 4,
};

/* The value of bits of float32, or of bf16, which is its upper half. */
static float float_of(uint32_t dtype, uint64_t bits)
{
    return fsdp_f32_from_bits((uint32_t)bits << (dtype == OWN_BF16 ? 16 : 0));
}

static bool same_bits(float a, float b)
{
    return fsdp_f32_bits(a) == fsdp_f32_bits(b);
}

/* As a value of the wire. */
static float rounded(uint32_t dtype, float x)
{
    return dtype == OWN_BF16 ? fsdp_bf16_to_f32(fsdp_bf16_from_f32(x)) : x;
}

/* The mean in the wire's dtype, to which each operation is rounded. In bf16
 * there are two ranks only, and so one order. */
static float mean(uint32_t order, uint32_t form, uint32_t wire, const float *x,
                  uint32_t n)
{
    const float k = (float)n;
    const float inverse = rounded(wire, 1.0f / k);
    float each[OWN_MAX_RANKS] = {0.0f};

    for (uint32_t r = 0; r < n; r++) {
        each[r] = rounded(wire, x[r]);
        each[r] = form == FORM_QUOTIENT_EACH  ? rounded(wire, each[r] / k)
                  : form == FORM_PRODUCT_EACH ? rounded(wire, each[r] * inverse)
                                              : each[r];
    }
    const float sum =
        rounded(wire, orders_fold(order, FSDP_DTYPE_F32, each, n));
    return form == FORM_QUOTIENT  ? rounded(wire, sum / k)
           : form == FORM_PRODUCT ? rounded(wire, sum * inverse)
                                  : sum;
}

/* The gradient that a rank's passes of a step gave an element: the sum of its
 * microbatches. False: no pass gave one. */
static bool local(const struct own_set *s, const struct own_tensor *reduced,
                  uint32_t r, uint32_t sample, float *out)
{
    struct own_tensor like = {
        .step = reduced->step, .rank = r, .parameter = reduced->parameter};
    /* FSDP1 casts a gradient after it has added it up; fully_shard before. */
    const uint32_t dtype =
        own_is_flat(s) ? s->unsharded.compute : s->unsharded.reduce;
    bool any = false;

    snprintf(like.stage, sizeof(like.stage), "local-gradient");
    like.n = s->unsharded.parameter[reduced->parameter].n;
    *out = 0.0f;
    for (uint32_t b = 0; b < s->unsharded.microbatches; b++) {
        const struct own_tensor *g;

        like.microbatch = b;
        g = own_find(&s->rank[r], &like);
        if (g && g->dtype <= OWN_BF16 && sample < g->n_values) {
            const float x =
                rounded(dtype, float_of(g->dtype, g->value[sample]));

            *out = any ? rounded(dtype, *out + x) : x;
            any = true;
        }
    }
    return any;
}

/* Whether one of the orders gives the value, divided in this form. */
static bool given(uint32_t form, uint32_t wire, const float *x, uint32_t n,
                  float got)
{
    for (uint32_t order = 0; order < orders_count(n); order++) {
        if (same_bits(mean(order, form, wire, x, n), got)) {
            return true;
        }
    }
    return false;
}

struct part {
    uint32_t n, first; /* recorded elements, the first of them */
    float got[OWN_SAMPLES];
    float x[OWN_SAMPLES][OWN_MAX_RANKS];
};

/* Whether all is what this rank's own passes gave, and not also the mean: what
 * other ranks gave has not come to it. */
static bool is_own(const struct part *p, uint32_t r, uint32_t world)
{
    bool differs = false;

    for (uint32_t i = 0; i < p->n; i++) {
        if (!same_bits(p->got[i], p->x[i][r])) {
            return false;
        }
        for (uint32_t k = 0; k < world; k++) {
            differs |= !same_bits(p->got[i], p->x[i][k]);
        }
    }
    return differs;
}

/* The first element that this form does not give; n: it gives all. */
static uint32_t first_bad(const struct part *p, uint32_t world, uint32_t wire,
                          uint32_t form)
{
    uint32_t i = 0;

    while (i < p->n && given(form, wire, p->x[i], world, p->got[i])) {
        i++;
    }
    return i;
}

static bool collect(const struct own_set *s, const struct own_tensor *t,
                    struct part *p, struct own_finding *f)
{
    const uint64_t all = s->unsharded.parameter[t->parameter].n;

    p->n = t->n_values;
    p->first = own_places_before(all, t->first);
    for (uint32_t i = 0; i < p->n; i++) {
        bool any = false;

        p->got[i] = float_of(OWN_F32, t->value[i]);
        for (uint32_t r = 0; r < s->world; r++) {
            any |= local(s, t, r, p->first + i, &p->x[i][r]);
        }
        if (!any) {
            return own_fail(f, "it has a reduced gradient, and no rank gave "
                               "one");
        }
    }
    return true;
}

static bool part_holds(const struct own_set *s, const struct own_tensor *t,
                       uint32_t r, struct own_finding *f)
{
    const uint64_t all = s->unsharded.parameter[t->parameter].n;
    const uint32_t wire = s->unsharded.reduce;
    char text[2][OWN_VALUE_BYTES];
    char times[64] = "";
    struct part p = {0};
    uint32_t best = 0;
    float want;

    if (t->dtype != OWN_F32) {
        return own_fail(f, "the reduced gradient is %s, f32 expected",
                        own_dtype_name(t->dtype));
    }
    if (!collect(s, t, &p, f)) {
        return false;
    }
    for (uint32_t form = 0; form < N_FORMS; form++) {
        const uint32_t bad = first_bad(&p, s->world, wire, form);

        if (bad == p.n) {
            return true;
        }
        best = bad > best ? bad : best;
    }
    f->element = (int64_t)own_place(all, p.first + best);
    want = mean(0, FORM_QUOTIENT, wire, p.x[best], s->world);
    own_value(OWN_F32, t->value[best], text[0]);
    own_value(OWN_F32, fsdp_f32_bits(want), text[1]);
    f->unsynced = is_own(&p, r, s->world);
    if (f->unsynced) {
        return own_fail(f,
                        "reduced to %s, which is this rank's own gradient; the "
                        "mean of the ranks' is %s: " OWN_UNSYNCED,
                        text[0], text[1]);
    }
    for (int factor = 2; factor <= (int)s->world * 2; factor++) {
        if (want != 0.0f && same_bits(p.got[best], want * (float)factor)) {
            snprintf(times, sizeof(times), ": it is that times %d", factor);
        } else if (want != 0.0f &&
                   same_bits(p.got[best], want / (float)factor)) {
            snprintf(times, sizeof(times), ": it is that over %d", factor);
        }
    }
    return own_fail(f,
                    "reduced to %s; the mean of the ranks' local gradients "
                    "is %s%s",
                    text[0], text[1], times);
}

static bool tensor_holds(const struct own_set *s, const struct own_tensor *t,
                         uint32_t r, struct own_finding *f)
{
    const struct own_tensor *want = own_find(&s->unsharded, t);
    char text[sizeof(f->text)];

    *f = own_nowhere();
    f->step = t->step;
    f->rank = r;
    f->parameter = t->parameter;
    if (!part_holds(s, t, r, f)) {
        return false;
    }
    /* With more ranks the unsharded run took these values from the sharded
     * one. */
    if (s->world > 2 ||
        (want && own_tensors_same(s, t, want, "unsharded", f))) {
        return true;
    }
    snprintf(text, sizeof(text), "%s", f->text);
    return own_fail(f, "reduced gradient: %.300s",
                    !want ? "the unsharded run has none" : text);
}

/* Every gradient that the unsharded run reduced is there. */
static bool none_missing(const struct own_set *s, struct own_finding *f)
{
    for (uint32_t i = 0; i < s->unsharded.n_tensors; i++) {
        const struct own_tensor *t = &s->unsharded.tensor[i];

        for (uint32_t r = 0; r < s->world; r++) {
            const struct own_record *rank = &s->rank[r];

            for (uint32_t k = 0; k < rank->n_pieces; k++) {
                if (own_stage_is(t, "reduced") &&
                    rank->piece[k].parameter == t->parameter &&
                    rank->piece[k].first == t->first &&
                    rank->piece[k].n == t->n && !own_find(rank, t)) {
                    *f = own_nowhere();
                    f->step = t->step;
                    f->rank = r;
                    f->parameter = t->parameter;
                    return own_fail(f, "it has no reduced gradient, and the "
                                       "unsharded run has one");
                }
            }
        }
    }
    return true;
}

bool own_reduced_holds(const struct own_requirement *q, const struct own_set *s,
                       struct own_finding *f)
{
    bool holds = true;

    for (uint32_t r = 0; r < s->world; r++) {
        for (uint32_t i = 0; i < s->rank[r].n_tensors; i++) {
            const struct own_tensor *t = &s->rank[r].tensor[i];
            struct own_finding mine;

            if (own_stage_is(t, q->stage) && !tensor_holds(s, t, r, &mine) &&
                (holds || mine.step < f->step)) {
                *f = mine;
                holds = false;
            }
        }
    }
    return holds && none_missing(s, f);
}

/* Twice or half of a value: its last bit could be another order's. */
bool own_reduced_spoil(const struct own_requirement *q, struct own_set *s,
                       struct own_spoil *undo)
{
    for (uint32_t r = s->world; r-- > 0;) {
        for (uint32_t i = 0; i < s->rank[r].n_tensors; i++) {
            struct own_tensor *t = &s->rank[r].tensor[i];

            if (own_stage_is(t, q->stage) && t->n_values > 0) {
                own_damage(undo, &t->value[0], sizeof(t->value[0]));
                t->value[0] ^= UINT64_C(1) << 23;
                return true;
            }
        }
    }
    return false;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_controls.c - the knobs of single units.
 */
#include "impl_calls.h"

#include <math.h>

bool impl_has_factors(const struct impl_knobs *knob)
{
    return !isinf(1.0f / knob->predivide) &&
           !isinf(knob->predivide / knob->divide);
}

void impl_take_factors(struct impl_unit *x)
{
    x->prescale = 1.0f / x->knob.predivide;
    x->scale = x->knob.predivide / x->knob.divide;
}

/* Factors are what was found with the layout. */
void impl_set_knobs(struct fsdp_sharded *s)
{
    for (uint32_t u = 0; u < s->units.n_units; u++) {
        struct impl_knobs *next = &s->unit[u].next_knob;

        next->sync = next->all_reduce = next->reshard_backward = true;
        next->reshard_forward = !s->extent[u].kept;
    }
    s->said = true;
    s->turned = true;
}

/* Whether a unit stays unsharded behind its forward is for the plans to know.
 */
static int plan_anew(struct fsdp_sharded *s)
{
    struct impl_plan *plan;
    bool other = false;

    for (uint32_t u = 0; u < s->units.n_units; u++) {
        const bool kept = !s->unit[u].knob.reshard_forward;

        other = other || s->extent[u].kept != kept;
        s->extent[u].kept = kept;
    }
    s->planned = s->planned && !other;
    if (!s->planned) {
        FSDP_TRY(impl_make_plans(s, &plan));
        impl_take_plans(s, plan);
    }
    return FSDP_OK;
}

static uint32_t number_of(const struct impl_knobs *knob)
{
    return knob->sync | (uint32_t)knob->all_reduce << 1 |
           (uint32_t)knob->reshard_forward << 2 |
           (uint32_t)knob->reshard_backward << 3;
}

/* Passes of which all is alike have the same number: what a step needed before
 * is a guess at what it will need (impl_trace.h). */
int impl_turn_knobs(struct fsdp_sharded *s)
{
    if (!s->turned) {
        return FSDP_OK;
    }
    s->any_sync = false;
    s->all_sync = true;
    s->knobs = 2166136261u; /* FNV-1a */
    for (uint32_t u = 0; u < s->units.n_units; u++) {
        const struct impl_knobs *knob = &s->unit[u].next_knob;

        s->unit[u].knob = *knob;
        impl_take_factors(&s->unit[u]);
        s->any_sync = s->any_sync || knob->sync;
        s->all_sync = s->all_sync && knob->sync;
        s->knobs = (s->knobs ^ number_of(knob)) * 16777619u;
    }
    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        s->knobs = (s->knobs ^ s->parameter[p].frozen) * 16777619u;
    }
    FSDP_TRY(plan_anew(s)); /* or the next BEGIN does */
    s->turned = false;
    return FSDP_OK;
}

static bool *switch_of(struct impl_knobs *x, uint32_t knob)
{
    switch (knob) {
    case FSDP_KNOB_GRADIENT_SYNC:
        return &x->sync;
    case FSDP_KNOB_ALL_REDUCE:
        return &x->all_reduce;
    case FSDP_KNOB_RESHARD_AFTER_FORWARD:
        return &x->reshard_forward;
    default:
        return &x->reshard_backward;
    }
}

static bool is_factor(uint32_t knob)
{
    return knob == FSDP_KNOB_DIVIDE_FACTOR ||
           knob == FSDP_KNOB_PREDIVIDE_FACTOR;
}

static void turn(struct impl_knobs *x, uint32_t knob, float value)
{
    if (knob == FSDP_KNOB_DIVIDE_FACTOR) {
        x->divide = value;
    } else if (knob == FSDP_KNOB_PREDIVIDE_FACTOR) {
        x->predivide = value;
    } else {
        *switch_of(x, knob) = value != 0.0f;
    }
}

/* Whether the unit's knob can be turned so. */
static bool fits(const struct impl_unit *x, uint32_t knob, float value)
{
    struct impl_knobs next = x->next_knob;

    if (!is_factor(knob)) {
        return value == 0.0f || value == 1.0f;
    }
    turn(&next, knob, value);
    return value > 0.0f && isfinite(value) && impl_has_factors(&next);
}

static int refuse_set(const struct fsdp_sharded *s, uint32_t unit,
                      uint32_t knob, float value)
{
    return impl_fail(s->env, FSDP_ERR_INVALID, "impl.set",
                     "unit %u of %u, knob %u, value %g: one of these is none",
                     unit, s->units.n_units, knob, (double)value);
}

int impl_set(struct fsdp_sharded *s, uint32_t unit, uint32_t knob, float value)
{
    const bool all = unit == FSDP_NO_UNIT;
    const uint32_t first = all ? 0 : unit;
    const uint32_t end = all ? s->units.n_units : unit + 1;

    FSDP_TRY(impl_at_rest(s, "impl.set"));
    if ((!all && unit >= s->units.n_units) ||
        knob > FSDP_KNOB_PREDIVIDE_FACTOR) {
        return refuse_set(s, unit, knob, value);
    }
    for (uint32_t u = first; u < end; u++) {
        FSDP_TRY(fits(&s->unit[u], knob, value)
                     ? FSDP_OK
                     : refuse_set(s, u, knob, value));
    }
    for (uint32_t u = first; u < end; u++) {
        turn(&s->unit[u].next_knob, knob, value);
    }
    s->said = knob == FSDP_KNOB_GRADIENT_SYNC ? IMPL_MIXED_SYNC : s->said;
    s->turned = true;
    return FSDP_OK;
}

/* ---- By hand ------------------------------------------------------------ */

/* At rest, or in a pass. */
static int check_unit(const struct fsdp_sharded *s, uint32_t unit,
                      const char *where)
{
    FSDP_TRY(s->sequence ? FSDP_OK : impl_at_rest(s, where));
    return unit < s->units.n_units
               ? FSDP_OK
               : impl_fail(s->env, FSDP_ERR_INVALID, where, "unit %u of %u",
                           unit, s->units.n_units);
}

/* Unshards a unit by hand. No plan knows of it, so it has storage of its own.
 * Where units lie as they are gathered, compute waits when it needs the
 * unit. */
int impl_unshard_unit(struct fsdp_sharded *s, uint32_t unit)
{
    struct impl_unit *x;

    FSDP_TRY(check_unit(s, unit, "impl.unshard"));
    FSDP_TRY(impl_check_filled(s, "impl.unshard", true));
    x = &s->unit[unit];
    if (x->open || x->full || x->arrived) {
        return FSDP_OK;
    }
    FSDP_TRY(impl_early_settle(s));
    s->keeps = true;
    if (s->shards == 1) {
        FSDP_TRY(s->extent[unit].unshards
                     ? impl_gather(s, unit, x->dtype.param, NULL, 0)
                     : FSDP_OK);
        return impl_open(s, unit);
    }
    if (s->packs) { /* what is sent may lie where units arrive */
        x->arrived_life = NULL;
    }
    FSDP_TRY(impl_gather(s, unit, x->dtype.param, NULL, 0));
    x->by_hand = true;
    if (s->packs) {
        FSDP_TRY(impl_open(s, unit));
        return impl_unpack(s, unit, NULL);
    }
    return s->strict ? impl_open(s, unit) : FSDP_OK;
}

int impl_reshard_unit(struct fsdp_sharded *s, uint32_t unit)
{
    uint64_t died;
    struct impl_unit *x;

    FSDP_TRY(check_unit(s, unit, "impl.reshard"));
    x = &s->unit[unit];
    if (x->windowed) {
        return impl_fail(s->env, FSDP_ERR_INVALID, "impl.reshard",
                         "unit %u is in a window", unit);
    }
    if (x->by_hand) { /* it may be on its way */
        FSDP_TRY(impl_open(s, unit));
    }
    return x->open ? impl_reshard(s, unit, &died) : FSDP_OK;
}

int impl_reshard_kept(struct fsdp_sharded *s)
{
    if (!s->keeps) {
        return FSDP_OK;
    }
    s->keeps = false;
    return impl_reshard_each(s);
}

int impl_check_reduced(const struct fsdp_sharded *s, const char *where)
{
    for (uint32_t u = 0; u < s->units.n_units; u++) {
        const struct impl_unit *x = &s->unit[u];

        if ((x->grad && !x->in_flight) || x->partial) {
            return impl_fail(s->env, FSDP_ERR_INVALID, where,
                             "unit %u has gradients that were not reduced%s: "
                             "its last microbatch must have %s on",
                             u, x->partial ? " across replicas" : "",
                             x->partial ? "the all-reduce" : "gradient sync");
        }
    }
    return FSDP_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * controls.c - the knobs of single units, and the unsharded copies that are
 * kept by hand. A knob that is turned holds from the next BEGIN on.
 */
#include "sharded.h"

#include <math.h>
#include <stddef.h>

void ref_set_knobs(struct fsdp_sharded *s, const struct fsdp_units *units)
{
    for (uint32_t u = 0; u < units->n_units; u++) {
        s->unit[u].next_knob = (struct ref_knobs){
            .sync = true,
            .all_reduce = true,
            .reshard_forward =
                ref_reshards_after_forward(units, &s->options, u),
            .reshard_backward = true,
            .divisors = ref_divisors(&s->options, units, u, s->env->world)};
    }
}

void ref_turn_knobs(struct fsdp_sharded *s)
{
    for (uint32_t u = 0; u < s->units->n_units; u++) {
        struct ref_unit *x = &s->unit[u];
        x->knob = x->next_knob;
        x->factor = ref_factors(x->knob.divisors);
    }
}

/* This may be called within a pass, too. */
int ref_set_gradient_sync(struct fsdp_sharded *s, uint32_t on)
{
    for (uint32_t u = 0; u < s->units->n_units; u++) {
        s->unit[u].next_knob.sync = on != 0;
    }
    return FSDP_OK;
}

static void turn(struct ref_knobs *of, uint32_t knob, float value)
{
    const bool on = value == 1.0f;

    switch (knob) {
    case FSDP_KNOB_GRADIENT_SYNC:
        of->sync = on;
        break;
    case FSDP_KNOB_ALL_REDUCE:
        of->all_reduce = on;
        break;
    case FSDP_KNOB_RESHARD_AFTER_FORWARD:
        of->reshard_forward = on;
        break;
    case FSDP_KNOB_RESHARD_AFTER_BACKWARD:
        of->reshard_backward = on;
        break;
    case FSDP_KNOB_DIVIDE_FACTOR:
        of->divisors.divide = value;
        break;
    default:
        of->divisors.predivide = value;
        break;
    }
}

static int check_unit(const struct fsdp_sharded *s, uint32_t unit,
                      const char *where)
{
    return unit < s->units->n_units
               ? FSDP_OK
               : ref_fail(s->env, FSDP_ERR_INVALID, where, "unit %u of %u",
                          unit, s->units->n_units);
}

static bool is_factor(uint32_t knob)
{
    return knob == FSDP_KNOB_DIVIDE_FACTOR ||
           knob == FSDP_KNOB_PREDIVIDE_FACTOR;
}

/* INVALID if the factors that unit u will have next do not fit together. */
static int check_factor(const struct fsdp_sharded *s, uint32_t u, uint32_t knob,
                        float value)
{
    struct ref_knobs next = s->unit[u].next_knob;
    struct ref_factors f;

    turn(&next, knob, value);
    f = ref_factors(next.divisors);
    if (!(value > 0.0f) || isinf(value) || isinf(f.before) || isinf(f.behind)) {
        return ref_fail(s->env, FSDP_ERR_INVALID, "ref.set",
                        "knob %u of unit %u is turned to %g: a factor is "
                        "positive and finite, and so is what gradients are "
                        "multiplied by for it",
                        knob, u, (double)value);
    }
    return FSDP_OK;
}

static int check_set(const struct fsdp_sharded *s, uint32_t unit, uint32_t knob,
                     float value)
{
    FSDP_TRY(ref_at_rest(s, "ref.set"));
    FSDP_TRY(unit == FSDP_NO_UNIT ? FSDP_OK : check_unit(s, unit, "ref.set"));
    if (knob > FSDP_KNOB_PREDIVIDE_FACTOR) {
        return ref_fail(s->env, FSDP_ERR_INVALID, "ref.set",
                        "knob %u is none of engine.h", knob);
    }
    for (uint32_t u = 0; is_factor(knob) && u < s->units->n_units; u++) {
        if (unit == FSDP_NO_UNIT || unit == u) {
            FSDP_TRY(check_factor(s, u, knob, value));
        }
    }
    if (!is_factor(knob) && value != 0.0f && value != 1.0f) {
        return ref_fail(s->env, FSDP_ERR_INVALID, "ref.set",
                        "knob %u is turned to 0 or 1, not to %g", knob,
                        (double)value);
    }
    return FSDP_OK;
}

int ref_set(struct fsdp_sharded *s, uint32_t unit, uint32_t knob, float value)
{
    FSDP_TRY(check_set(s, unit, knob, value));
    for (uint32_t u = 0; u < s->units->n_units; u++) {
        if (unit == FSDP_NO_UNIT || unit == u) {
            turn(&s->unit[u].next_knob, knob, value);
        }
    }
    return FSDP_OK;
}

/* ---- By hand ------------------------------------------------------------ */

/* At rest, or in a pass. */
static int check_call(const struct fsdp_sharded *s, uint32_t unit,
                      const char *where)
{
    FSDP_TRY(s->sequence ? FSDP_OK : ref_at_rest(s, where));
    return check_unit(s, unit, where);
}

int ref_unshard_unit(struct fsdp_sharded *s, uint32_t unit)
{
    FSDP_TRY(check_call(s, unit, "ref.unshard"));
    FSDP_TRY(ref_check_filled(s, "ref.unshard", true));
    return ref_unshard(s, unit, s->unit[unit].dtype.param);
}

int ref_reshard_unit(struct fsdp_sharded *s, uint32_t unit)
{
    FSDP_TRY(check_call(s, unit, "ref.reshard"));
    if (s->unit[unit].windowed) {
        return ref_fail(s->env, FSDP_ERR_INVALID, "ref.reshard",
                        "unit %u is in a window", unit);
    }
    ref_reshard(s, unit);
    return FSDP_OK;
}

int ref_check_reduced(const struct fsdp_sharded *s, const char *where)
{
    for (uint32_t u = 0; u < s->units->n_units; u++) {
        if (s->unit[u].grad_full) {
            return ref_fail(s->env, FSDP_ERR_INVALID, where,
                            "unit %u has gradients that were not reduced: its "
                            "last microbatch must have gradient sync on",
                            u);
        }
        if (s->unit[u].partial) {
            return ref_fail(s->env, FSDP_ERR_INVALID, where,
                            "unit %u has a partial sum: its last microbatch "
                            "must be reduced across replicas",
                            u);
        }
    }
    return FSDP_OK;
}

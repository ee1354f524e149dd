/* SPDX-License-Identifier: Apache-2.0 */
/*
 * controls.c - what is done with one unit and not with another: its knobs, and
 * what they leave behind. A knob that is turned holds from the next BEGIN on.
 */
#include "sharded.h"

#include <stddef.h>

void ref_set_knobs(struct fsdp_sharded *s)
{
    for (uint32_t u = 0; u < s->units->n_units; u++) {
        s->unit[u].next_knob = (struct ref_knobs){true, true};
    }
}

void ref_turn_knobs(struct fsdp_sharded *s)
{
    for (uint32_t u = 0; u < s->units->n_units; u++) {
        s->unit[u].knob = s->unit[u].next_knob;
    }
}

/* Allowed in a pass, too. */
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
    default:
        of->all_reduce = on;
        break;
    }
}

static int check(const struct fsdp_sharded *s, uint32_t unit, uint32_t knob,
                 float value)
{
    FSDP_TRY(ref_at_rest(s, "ref.set"));
    if (unit != FSDP_NO_UNIT && unit >= s->units->n_units) {
        return ref_fail(s->env, FSDP_ERR_INVALID, "ref.set", "unit %u of %u",
                        unit, s->units->n_units);
    }
    if (knob > FSDP_KNOB_ALL_REDUCE) {
        return ref_fail(s->env, FSDP_ERR_INVALID, "ref.set",
                        "knob %u is none of engine.h", knob);
    }
    if (value != 0.0f && value != 1.0f) {
        return ref_fail(s->env, FSDP_ERR_INVALID, "ref.set",
                        "knob %u is turned to 0 or 1, not to %g", knob,
                        (double)value);
    }
    return FSDP_OK;
}

int ref_set(struct fsdp_sharded *s, uint32_t unit, uint32_t knob, float value)
{
    FSDP_TRY(check(s, unit, knob, value));
    for (uint32_t u = 0; u < s->units->n_units; u++) {
        if (unit == FSDP_NO_UNIT || unit == u) {
            turn(&s->unit[u].next_knob, knob, value);
        }
    }
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

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_controls.c - what is said of one unit and not of another.
 */
#include "impl_state.h"

void impl_set_knobs(struct fsdp_sharded *s)
{
    for (uint32_t u = 0; u < s->units.n_units; u++) {
        s->unit[u].next_knob = (struct impl_knobs){true, true};
    }
    s->said = true;
    s->turned = true;
}

/* Passes of which all is alike have the same number: what a step needed before
 * is a guess at what it will need (impl_trace.h). */
void impl_turn_knobs(struct fsdp_sharded *s)
{
    if (!s->turned) {
        return;
    }
    s->turned = false;
    s->any_sync = false;
    s->all_sync = true;
    s->knobs = 2166136261u; /* FNV-1a */
    for (uint32_t u = 0; u < s->units.n_units; u++) {
        const struct impl_knobs *knob = &s->unit[u].next_knob;

        s->unit[u].knob = *knob;
        s->any_sync = s->any_sync || knob->sync;
        s->all_sync = s->all_sync && knob->sync;
        s->knobs ^= knob->sync | (uint32_t)knob->all_reduce << 1;
        s->knobs *= 16777619u;
    }
}

static int refuse(const struct fsdp_sharded *s, uint32_t unit, uint32_t knob,
                  float value)
{
    return impl_fail(s->env, FSDP_ERR_INVALID, "impl.set",
                     "unit %u of %u, knob %u, value %g: one of these is none",
                     unit, s->units.n_units, knob, (double)value);
}

int impl_set(struct fsdp_sharded *s, uint32_t unit, uint32_t knob, float value)
{
    const bool all = unit == FSDP_NO_UNIT;

    FSDP_TRY(impl_at_rest(s, "impl.set"));
    if ((!all && unit >= s->units.n_units) || knob > FSDP_KNOB_ALL_REDUCE ||
        (value != 0.0f && value != 1.0f)) {
        return refuse(s, unit, knob, value);
    }
    for (uint32_t u = all ? 0 : unit; u < (all ? s->units.n_units : unit + 1);
         u++) {
        struct impl_knobs *x = &s->unit[u].next_knob;

        *(knob == FSDP_KNOB_ALL_REDUCE ? &x->all_reduce : &x->sync) =
            value != 0.0f;
    }
    s->said = IMPL_MIXED_SYNC;
    s->turned = true;
    return FSDP_OK;
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

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_refusals.c - which calls the contract says must be refused in the
 * state that an engine is in, as far as that is certain.
 */
#include "script/script_state.h"

#include "cases/case_graph.h"

#include <stdio.h>
#include <string.h>

enum {
    LAST_TO_AVOID = 7, /* generator: may_lack_none */
    SCALED_UP = 16,    /* least exponent of a scaled loss, of base 2 */
};

/* Bits of the units that every model has in this life. Each model has two
 * layers; of the other bits nothing is known. */
static uint64_t sure_units(const struct script_state *s)
{
    if (!s->s->has_case) {
        return UINT64_MAX;
    }
    return s->world.wrap == CASE_WRAP_LAYER || s->world.wrap == CASE_WRAP_BLOCK
               ? 3
               : 1;
}

/* Whether one of these units has gradients for certain. That is not known where
 * a unit may have nothing that trains, or nothing that a pass uses. A random
 * graph may have nothing at all that trains, if some of it is frozen in
 * passing, or if all is frozen but its head, which may be tied. */
static bool has_some(const struct script_state *s, uint64_t units)
{
    const bool drawn = s->s->has_case && strcmp(s->s->c.workload, "graph") == 0;
    const bool trains_all =
        !s->s->has_case || s->s->c.frozen == WORKLOAD_TRAINS_ALL;

    if (drawn && (s->frozen != 0 || (!trains_all && case_is_tied(&s->s->c)))) {
        return false;
    }
    if (s->frozen != 0) {
        return units == UINT64_MAX && s->frozen != UINT64_MAX && trains_all;
    }
    return trains_all && !drawn ? (units & sure_units(s)) != 0
                                : units == UINT64_MAX;
}

/* Whether the checkpoint has the renamed parameter (a number from 1) under a
 * name of its own. A parameter that is tied to another one has none there. */
static bool is_saved(const struct script_state *s, uint32_t renamed)
{
    return renamed == 0 || !s->s->has_case ||
           script_original(&s->s->c, renamed - 1) == renamed - 1;
}

/* Why the whole checkpoint `a` must be refused: the only reason, or, of
 * several, the one that an engine finds first. */
static uint32_t of_slot(const struct script_state *s)
{
    const uint32_t tensors =
        FSDP_SAVE_PARAMETERS | FSDP_SAVE_STATES | FSDP_SAVE_BUFFERS;
    const uint32_t what = s->slot[0].what ? s->slot[0].what : tensors;
    const bool has_parameters = (what & FSDP_SAVE_PARAMETERS) != 0;
    const bool all = (~what & tensors) == 0 && s->slot[0].dtype == 0;

    if (!is_saved(s, s->slot[0].renamed) || !is_saved(s, s->renamed)) {
        return 0;
    }
    if (s->slot[0].renamed != 0 && s->renamed != 0 &&
        s->slot[0].renamed != s->renamed) {
        return 0; /* two names are missing: engines may name either */
    }
    if (s->slot[0].renamed != s->renamed) {
        return s->slot[0].local                 ? 0
               : !has_parameters                ? SCRIPT_PARTS
               : all && script_has_states(s, 0) ? SCRIPT_RENAMED
                                                : 0;
    }
    if (all) {
        return script_lacks_states(s, 0) ? SCRIPT_STATELESS : 0;
    }
    return s->slot[0].local   ? 0
           : !has_parameters  ? SCRIPT_PARTS
           : s->slot[0].dtype ? SCRIPT_ROUNDED
                              : 0;
}

/* Whether some parameter has no values, for certain. Each model has at least
 * two parameters; ignored ones and those without elements need no values. */
static bool lacks_values(const struct script_state *s)
{
    if (!s->empty || (s->values & 3) == 3) {
        return false;
    }
    return s->values == 0 || !s->s->has_case ||
           (!case_ignores(&s->s->c) && !script_has_all(&s->s->c, s->values));
}

/* Whether reduced gradients are so large that a clip to the largest float32
 * overflows with any model: only the scale of the loss has made them so. */
static bool is_scaled_up(const struct script_state *s)
{
    const struct script_scale *scale = &s->s->scale;

    return scale->said && scale->every == 0 && scale->exponent >= SCALED_UP &&
           s->reduced && !s->pending && !s->touched &&
           s->hurt == SCRIPT_UNHURT && !s->hurt_values && s->frozen == 0;
}

uint32_t script_when_at_rest(const struct script_state *s)
{
    uint32_t now = SCRIPT_AT_REST;

    if (s->open_all) {
        return SCRIPT_OPEN_ALL;
    }
    now |= has_some(s, s->unreduced) ? SCRIPT_PENDING : 0;
    now |= has_some(s, s->partial) ? SCRIPT_PARTIAL : 0;
    now |= (s->pending || s->reduced) && has_some(s, UINT64_MAX)
               ? SCRIPT_GRADIENTS
               : 0;
    now |= s->step_set ? SCRIPT_STEP_SET : 0;
    now |= s->predivided != 0 ? SCRIPT_PREDIVIDED : 0;
    now |= lacks_values(s) ? SCRIPT_EMPTY : 0;
    now |= s->saving != SCRIPT_NO_SLOT ? SCRIPT_SAVING : SCRIPT_IDLE;
    now |= !s->pending && !s->reduced && s->saving == SCRIPT_NO_SLOT
               ? SCRIPT_FREE
               : 0;
    now |=
        (s->saved & 1) != 0 && s->saving == SCRIPT_NO_SLOT ? SCRIPT_SAVED : 0;
    now |= (now & SCRIPT_SAVED) != 0 ? of_slot(s) : 0;
    now |= s->hurt == SCRIPT_HURT && s->reduced && !s->pending
               ? SCRIPT_NOT_FINITE
               : 0;
    now |= is_scaled_up(s) ? SCRIPT_SCALED_UP : 0;
    return now;
}

/* Whether some rank may lack no value where others do, because it owns none or
 * was given them all. Such a rank shows its pieces. A script that was drawn
 * before the judge told such ranks from others cannot ask that its pieces are
 * refused. */
static bool may_lack_none(const struct script_state *s)
{
    const uint32_t degree = case_shard_degree(&s->world);

    return s->s->generator != 0 && s->s->generator <= LAST_TO_AVOID &&
           (s->values != 0 || degree > 2 ||
            (degree > 1 && strcmp(s->world.workload, "graph") == 0));
}

void script_check_call(struct script_state *s, uint32_t call, uint32_t now)
{
    const struct script_call_row *row = &script_calls[call];

    if ((row->when & now) == 0 && !s->why[0]) {
        snprintf(s->why, sizeof(s->why),
                 "nothing says that %s is refused here; it is %s", row->name,
                 script_when_text(row->when));
    }
    script_refuse_if(s,
                     s->s->has_case && s->s->c.ranks < 2 &&
                         script_calls[call].refusal == SCRIPT_IS_A_MISMATCH,
                     "one rank cannot disagree: a world of two could");
    script_refuse_if(s,
                     s->kept && (call == SCRIPT_CALL_PARAM_AT_REST ||
                                 call == SCRIPT_CALL_PARAM_AFTER_CANCEL),
                     "a unit may be unsharded: `step` ends that");
    script_refuse_if(s, call == SCRIPT_CALL_DEFERRED_PIECES && may_lack_none(s),
                     "a rank that lacks no value has its pieces");
    if (call == SCRIPT_CALL_LOAD_DAMAGED) {
        s->saved &= ~1u; /* it is what was damaged */
    }
}

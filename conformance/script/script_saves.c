/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_saves.c - what a script has saved, as far as that is known, and what
 * may be loaded of it.
 */
#include "script/script_state.h"

void script_save(struct script_state *s, const struct script_action *a)
{
    script_refuse_if(
        s, s->pending || s->reduced,
        "a save while there are gradients is refused (zero drops them)");
    script_refuse_if(
        s, s->saving != SCRIPT_NO_SLOT,
        "a save is refused while another has not been waited for: `wait` "
        "comes first");
    script_refuse_if(s, a->dtype && a->form != FSDP_SAVE_FULL,
                     "parameters are rounded in the full form alone");
    s->saving = a->slot;
    s->saving_hurt = s->hurt_values;
    s->slot[a->slot].local = a->form == FSDP_SAVE_LOCAL;
    s->slot[a->slot].wrap = s->world.wrap;
    s->slot[a->slot].degree = case_shard_degree(&s->world);
    s->slot[a->slot].frozen = s->frozen;
    s->slot[a->slot].thawed = s->thawed;
    s->slot[a->slot].renamed = s->renamed;
    s->slot[a->slot].what = a->what;
    s->slot[a->slot].dtype = a->dtype;
}

void script_wait(struct script_state *s, const struct script_action *a)
{
    script_refuse_if(s, s->saving != a->slot,
                     "this slot is not being saved: `save` comes first");
    s->saved |= 1u << a->slot;
    s->broken &= ~(1u << a->slot);
    s->broken |= (uint32_t)s->saving_hurt << a->slot;
    s->saving = SCRIPT_NO_SLOT;
    script_refuse_if(
        s, a->same && (s->saved >> a->same_slot & 1) == 0,
        "the slot that it is compared with has not been saved: `save` and "
        "`wait` come first");
}

/* Whether tensors of the model are missing in the slot, or may be. */
static bool is_partial(const struct script_state *s, uint32_t slot)
{
    const uint32_t tensors =
        FSDP_SAVE_PARAMETERS | FSDP_SAVE_STATES | FSDP_SAVE_BUFFERS;

    return s->slot[slot].what != 0 && (~s->slot[slot].what & tensors) != 0;
}

static bool lacks_parameters(const struct script_state *s, uint32_t slot)
{
    return s->slot[slot].what != 0 &&
           (s->slot[slot].what & FSDP_SAVE_PARAMETERS) == 0;
}

static bool other_names(const struct script_state *s, uint32_t slot)
{
    return s->slot[slot].renamed != s->renamed || is_partial(s, slot);
}

void script_load(struct script_state *s, const struct script_action *a)
{
    script_refuse_if(
        s, s->saving != SCRIPT_NO_SLOT,
        "a load is refused while a save has not been waited for: `wait` "
        "comes first");
    script_refuse_if(
        s, (s->saved >> a->slot & 1) == 0,
        "this slot has not been saved, or has been damaged: `save` and "
        "`wait` come first");
    script_refuse_if(
        s,
        s->slot[a->slot].local &&
            (s->slot[a->slot].wrap != s->world.wrap ||
             s->slot[a->slot].degree != case_shard_degree(&s->world)),
        "the local form loads where wrap and shard degree are the same");
    script_refuse_if(
        s,
        s->slot[a->slot].local && (s->slot[a->slot].frozen != s->frozen ||
                                   s->slot[a->slot].thawed != s->thawed),
        "the local form loads where the same parameters are frozen");
    script_refuse_if(
        s, !a->lenient && !script_has_states(s, a->slot),
        "a parameter is trained now that may have been frozen when this "
        "was saved, without states: `freeze` comes first");
    script_refuse_if(
        s, other_names(s, a->slot) && (!a->lenient || s->slot[a->slot].local),
        "a parameter has another name than when this was saved, or a part "
        "was left out: `lenient` takes it, but not of the local form");
    script_refuse_if(s, s->slot[a->slot].dtype && !a->lenient,
                     "parameters were rounded when this was saved: `lenient` "
                     "takes it");
    script_refuse_if(
        s, a->lenient && (s->s->given >> a->slot & 1) != 0,
        "what another world had is not known here: without `lenient`");
    script_drop_gradients(s);
    s->kept = false;
    s->empty = s->empty && (s->slot[a->slot].renamed != s->renamed ||
                            lacks_parameters(s, a->slot));
    s->hurt_values =
        (a->lenient && s->hurt_values) || (s->broken >> a->slot & 1) != 0;
}

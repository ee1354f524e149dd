/* SPDX-License-Identifier: Apache-2.0 */
/* script_action.c - see script_action.h. */
#include "requirements/script_action.h"

#include "judge/compare/compare.h"
#include "script/script_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct script_action *script_at(const struct expect *e, uint32_t i)
{
    return e->event[i].action;
}

bool script_does(const struct expect *e, uint32_t verb)
{
    for (uint32_t i = 0; case_is_script(e->c) && i < e->n_events; i++) {
        if (script_at(e, i)->verb == verb) {
            return true;
        }
    }
    return false;
}

bool script_action_tell(const struct expect *e, uint32_t i, struct finding *f)
{
    char text[64];
    size_t used = strlen(f->note);

    script_action_text(&e->script, e->event[i].action, text, sizeof(text));
    snprintf(f->note + used, sizeof(f->note) - used,
             "; action %u of those that are played: %s", i + 1, text);
    return false;
}

bool script_action_shows(const struct expect *e, const struct record *r,
                         uint32_t i, uint32_t k, uint32_t unit,
                         struct finding *f)
{
    for (uint32_t p = 0; p < e->model->n_parameters; p++) {
        const struct compare_part part = {.rank = k,
                                          .step = i,
                                          .parameter = p,
                                          .unit = e->unit_of_parameter[p],
                                          .n = fsdp_numel(e->model, p),
                                          .any_nan = compare_any_nan(e),
                                          .any_zero = e->profile == EXPECT_OWN};

        if (part.n > 0 && !expect_is_ignored(e, p) &&
            (unit == FSDP_NO_UNIT || unit == part.unit) &&
            !compare_equal(e, &part, RECORD_SUMMONED,
                           compare_values(r, RECORD_SUMMONED, &part),
                           compare_baseline(e, RECORD_SUMMONED, &part), f)) {
            return script_action_tell(e, i, f);
        }
    }
    return true;
}

const struct script_action *script_action_saved(const struct expect *e,
                                                uint32_t i)
{
    const uint32_t slot = e->event[i].action->slot;

    while (i > 0) {
        const struct script_action *a = e->event[--i].action;

        if (a->verb == SCRIPT_SAVE && a->slot == slot) {
            return a;
        }
    }
    return NULL;
}

uint32_t script_action_call(const char *name)
{
    uint32_t call = 0;

    while (call < SCRIPT_N_CALLS &&
           strcmp(script_calls[call].name, name) != 0) {
        call++;
    }
    return call;
}

/* Whether the script has given values for all parts that rank k owns. False,
 * too, where there is no memory: then the call is refused. */
static bool has_values(const struct expect *e, const struct script_state *s,
                       uint32_t k)
{
    struct expect_part *part = NULL;
    const bool empty = s->living ? s->empty : s->s->deferred;
    uint32_t n = 0;
    bool all = expect_parts(e, k % e->shards, &part, &n) == FSDP_OK;

    for (uint32_t i = 0; all && empty && i < n; i++) {
        const uint32_t p = part[i].parameter;

        all = p < 64 && (s->values >> p & 1) != 0;
    }
    free(part);
    return all;
}

bool script_action_has_pieces(const struct expect *e, uint32_t nth, uint32_t k)
{
    struct script_state state;

    script_state_begin(&e->script, NULL, &state);
    for (uint32_t i = 0; i < e->n_events; i++) {
        const struct script_action *a = e->event[i].action;

        if (a->verb == SCRIPT_WRONG && a->call == SCRIPT_CALL_DEFERRED_PIECES &&
            nth-- == 0) {
            return has_values(e, &state, k);
        }
        script_state_take(&state, a);
    }
    return false;
}

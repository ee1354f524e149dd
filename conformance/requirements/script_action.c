/* SPDX-License-Identifier: Apache-2.0 */
/* script_action.c - see script_action.h. */
#include "requirements/script_action.h"

#include <stdio.h>
#include <string.h>

bool script_action_tell(const struct expect *e, uint32_t i, struct finding *f)
{
    char text[64];
    size_t used = strlen(f->note);

    script_action_text(&e->script, e->event[i].action, text, sizeof(text));
    (void)snprintf(f->note + used, sizeof(f->note) - used,
                   "; action %u of those that are played: %s", i + 1, text);
    return false;
}

bool script_action_asks(const struct expect *e, uint32_t call)
{
    for (uint32_t i = 0; case_is_script(e->c) && i < e->n_events; i++) {
        const struct script_action *a = e->event[i].action;

        if (a->verb == SCRIPT_WRONG && a->call == call) {
            return true;
        }
        for (uint32_t k = 0; k < a->n_inside; k++) {
            const struct script_inside *in =
                &e->script.inside[a->first_inside + k];

            if (script_is_wrong(in) && in->call == call) {
                return true;
            }
        }
    }
    return false;
}

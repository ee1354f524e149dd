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

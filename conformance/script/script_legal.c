/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_legal.c - whether a script may be played: its first action that is
 * not legal, and why.
 */
#include "script/script_state.h"

#include <stdio.h>

uint32_t script_first_illegal(const struct script *s, const uint32_t lengths[2],
                              struct script_state *state, bool *at_end)
{
    struct script_walk w = script_begin(s);
    const struct script_action *a;
    uint32_t save = 0;

    *at_end = false;
    script_state_begin(s, lengths, state);
    while ((a = script_next(&w))) {
        script_state_take(state, a);
        if (state->why[0]) {
            return w.at - 1;
        }
        save = a->verb == SCRIPT_SAVE ? w.at - 1 : save;
    }
    *at_end = true;
    script_state_end(state);
    return state->why[0] ? save : s->n_actions;
}

int script_legal(const struct script *s, const uint32_t lengths[2],
                 struct fsdp_error *error)
{
    struct script_state state;
    char text[80] = "the end";
    bool at_end;
    uint32_t i = script_first_illegal(s, lengths, &state, &at_end);

    if (i == s->n_actions) {
        return FSDP_OK;
    }
    if (at_end) {
        i = s->n_actions - 1;
    } else {
        script_action_text(s, &s->action[i], text, sizeof(text));
    }
    *error = (struct fsdp_error){.status = FSDP_ERR_INVALID, .where = "script"};
    snprintf(error->message, sizeof(error->message), "action %u (%s): %s",
             i + 1, text, state.why);
    return FSDP_ERR_INVALID;
}

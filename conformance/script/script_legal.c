/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_legal.c - what may follow what: the state of an engine as the
 * contract describes it (fsdp/engine.h), walked through by a script.
 *
 * Of a call the contract says that it does something (legal), that it is
 * INVALID and changes nothing (refused: a script says `!`), or nothing at all
 * (silent: no script has it).
 */
#include "script/script.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NO_SLOT = SCRIPT_MAX_SLOTS
};

struct state {
    const uint32_t *lengths;
    bool living;    /* between shard and destroy */
    bool left_open; /* in a pass for good */
    bool sync;      /* as the next BEGIN will find it */
    bool pending;   /* gradients that sync has not reduced */
    bool reduced;   /* gradients that it has */
    uint32_t saving;
    uint32_t saved; /* slots, as bits */
    char why[160];  /* empty: legal so far */
};

static void begin_life(struct state *s)
{
    s->living = true;
    s->left_open = false;
    s->sync = true;
    s->pending = s->reduced = false;
    s->saving = NO_SLOT;
}

static void refuse(struct state *s, const char *why)
{
    if (!s->why[0]) {
        (void)snprintf(s->why, sizeof(s->why), "%s", why);
    }
}

static void refuse_if(struct state *s, bool wrong, const char *why)
{
    if (wrong) {
        refuse(s, why);
    }
}

/* Which bits of enum script_when hold at rest. */
static uint32_t when_at_rest(const struct state *s)
{
    uint32_t now = SCRIPT_AT_REST;

    now |= s->pending ? SCRIPT_PENDING : 0;
    now |= s->pending || s->reduced ? SCRIPT_GRADIENTS : 0;
    now |= s->saving != NO_SLOT ? SCRIPT_SAVING : SCRIPT_IDLE;
    now |= (s->saved & 1) != 0 && s->saving == NO_SLOT ? SCRIPT_SAVED : 0;
    return now;
}

static void check_call(struct state *s, uint32_t call, uint32_t now)
{
    if ((script_calls[call].when & now) == 0) {
        (void)snprintf(s->why, sizeof(s->why),
                       "nothing says that %s is refused here",
                       script_calls[call].name);
    }
    if (call == SCRIPT_CALL_LOAD_DAMAGED) {
        s->saved &= ~1u; /* it is what was damaged */
    }
}

/* ---- Passes ---- */

static void walk_inside(struct state *s, const struct script_inside *in,
                        uint32_t points, uint32_t length, bool trains)
{
    uint32_t at = script_place_in(in->place, length);
    uint32_t now = SCRIPT_IN_PASS;

    refuse_if(s, at > points, "the pass does not get to that place");
    now |= at == 0 ? SCRIPT_AT_START : 0;
    now |= at == 1 ? SCRIPT_IN_FORWARD : 0;
    now |= at < length ? SCRIPT_EARLY : 0;
    now |= at == length && trains ? SCRIPT_AT_LAST : 0;
    if (in->sync != SCRIPT_SYNC_UNSAID) {
        s->sync = in->sync == SCRIPT_SYNC_ON;
    } else {
        check_call(s, in->call, now);
    }
}

static void walk_pass(struct state *s, const struct script *script,
                      const struct script_action *a)
{
    bool trains = a->verb == SCRIPT_PASS;
    uint32_t length =
        s->lengths[trains ? FSDP_SEQUENCE_TRAIN : FSDP_SEQUENCE_EVAL];
    uint32_t points =
        a->ending == SCRIPT_WHOLE ? length : script_place_in(a->until, length);
    bool reduces;

    refuse_if(s, points > length, "the pass is not as long as that");
    if (a->sync != SCRIPT_SYNC_UNSAID) {
        s->sync = a->sync == SCRIPT_SYNC_ON;
    }
    reduces = s->sync;
    for (uint32_t i = 0; i < a->n_inside; i++) {
        walk_inside(s, &script->inside[a->first_inside + i], points, length,
                    trains);
    }
    if (a->ending == SCRIPT_CANCELLED) {
        s->pending = s->reduced = false;
    } else if (a->ending == SCRIPT_LEFT_OPEN) {
        s->left_open = true;
    } else if (trains) {
        s->pending = !reduces;
        s->reduced = s->reduced || reduces;
    }
}

/* ---- Checkpoints ---- */

static void walk_save(struct state *s, const struct script_action *a)
{
    refuse_if(s, s->pending || s->reduced,
              "a save while there are gradients is refused (zero drops them)");
    refuse_if(s, s->saving != NO_SLOT,
              "a save is refused while another has not been waited for");
    s->saving = a->slot;
}

static void walk_wait(struct state *s, const struct script_action *a)
{
    refuse_if(s, s->saving != a->slot, "this slot is not being saved");
    s->saved |= 1u << a->slot;
    s->saving = NO_SLOT;
    refuse_if(s, a->same && (s->saved >> a->same_slot & 1) == 0,
              "the slot that it is compared with has not been saved");
}

static void walk_load(struct state *s, const struct script_action *a)
{
    refuse_if(s, s->saving != NO_SLOT,
              "a load is refused while a save has not been waited for");
    refuse_if(s, (s->saved >> a->slot & 1) == 0,
              "this slot has not been saved, or has been damaged");
    s->pending = s->reduced = false;
}

/* ---- */

static void walk_optimizer(struct state *s, const struct script_action *a)
{
    refuse_if(s, s->pending,
              "it is refused while gradients are pending that sync has not "
              "reduced");
    if (a->verb == SCRIPT_CLIP) {
        refuse_if(s, !(a->max_norm > 0.0f), "the largest norm is above 0");
        refuse_if(s, a->p != 1.0f && a->p != 2.0f && !isinf(a->p),
                  "p is 1, 2 or inf");
    }
}

static void walk_life(struct state *s, const struct script *script,
                      const struct script_action *a)
{
    if (!s->living) {
        begin_life(s);
    }
    refuse_if(s, s->left_open && a->verb != SCRIPT_AGAIN,
              "a pass was left open: only `again` or the end may follow");
    switch (a->verb) {
    case SCRIPT_PASS:
    case SCRIPT_EVAL:
        walk_pass(s, script, a);
        break;
    case SCRIPT_STEP:
    case SCRIPT_CLIP:
        walk_optimizer(s, a);
        break;
    case SCRIPT_ZERO:
        s->pending = s->reduced = false;
        break;
    case SCRIPT_SYNC:
        s->sync = a->sync == SCRIPT_SYNC_ON;
        break;
    case SCRIPT_SAVE:
        walk_save(s, a);
        break;
    case SCRIPT_WAIT:
        walk_wait(s, a);
        break;
    case SCRIPT_LOAD:
        walk_load(s, a);
        break;
    case SCRIPT_WRONG:
        check_call(s, a->call, when_at_rest(s));
        break;
    case SCRIPT_AGAIN:
        refuse_if(s, s->saving != NO_SLOT, "a save has not been waited for");
        s->living = false;
        break;
    default: /* LOOK, SUMMON: at rest, anything may be looked at */
        break;
    }
}

static void walk(struct state *s, const struct script *script,
                 const struct script_action *a)
{
    if (a->verb != SCRIPT_WRONG ||
        script_calls[a->call].when != SCRIPT_UNTRAINED) {
        walk_life(s, script, a);
    } else if (s->living) {
        refuse(s, "models are offered before the first life");
    }
}

int script_legal(const struct script *s, const uint32_t lengths[2],
                 struct fsdp_error *error)
{
    struct script_walk w = script_begin(s);
    struct state state = {.lengths = lengths, .saved = s->given};
    const struct script_action *a;
    char text[80] = "the end";

    state.saving = NO_SLOT;
    while (!state.why[0] && (a = script_next(&w)) != NULL) {
        walk(&state, s, a);
        if (state.why[0]) {
            script_action_text(s, a, text, sizeof(text));
        }
    }
    refuse_if(&state, state.saving != NO_SLOT,
              "a save has not been waited for");
    if (!state.why[0]) {
        return FSDP_OK;
    }
    *error = (struct fsdp_error){.status = FSDP_ERR_INVALID, .where = "script"};
    (void)snprintf(error->message, sizeof(error->message), "action %u (%s): %s",
                   w.at, text, state.why);
    return FSDP_ERR_INVALID;
}

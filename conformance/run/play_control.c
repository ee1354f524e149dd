/* SPDX-License-Identifier: Apache-2.0 */
/*
 * play_control.c - what a script does with one unit, or with all by themselves;
 * and how that may be asked for wrongly.
 */
#include "run/play.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Who plays all ranks is told as each of them. */
int play_set(struct driver *x, const struct script_action *a)
{
    const uint32_t n = x->serial ? x->d->c->ranks : 1;
    int status = FSDP_OK;

    if (!x->engine.set) {
        return FSDP_ERR_INVALID; /* it is claimed */
    }
    for (uint32_t r = 0; r < n && status == FSDP_OK; r++) {
        x->env.rank = x->serial ? r : x->env.rank;
        status = x->engine.set(x->sharded, a->unit, a->knob, a->value);
    }
    x->env.rank = x->serial ? 0 : x->env.rank;
    return status;
}

/* ---- Calls that must be refused ---------------------------------------- */

static int set(struct driver *x, uint32_t unit, uint32_t knob, float value,
               int *status)
{
    *status = x->engine.set ? x->engine.set(x->sharded, unit, knob, value)
                            : FSDP_ERR_INVALID;
    return FSDP_OK;
}

int play_wrong_set(struct driver *x, int *status)
{
    return set(x, FSDP_NO_UNIT, FSDP_KNOB_GRADIENT_SYNC, 0.0f, status);
}

/* Whether the message has this number in it. */
static bool is_named(const struct driver *x, uint32_t number)
{
    const struct fsdp_error *e = x->env.error;
    char text[16];

    (void)snprintf(text, sizeof(text), "%u", number);
    return memmem(e->message, strnlen(e->message, sizeof(e->message)), text,
                  strlen(text)) != NULL;
}

static int refused_by_name(struct driver *x, uint32_t number, int status)
{
    return status == FSDP_OK || is_named(x, number)
               ? FSDP_OK
               : drive_answer_number(x, "unnamed-unit", number);
}

int play_wrong_set_unit(struct driver *x, int *status)
{
    const uint32_t n = x->units->n_units;

    FSDP_TRY(set(x, n, FSDP_KNOB_GRADIENT_SYNC, 0.0f, status));
    return refused_by_name(x, n, *status);
}

int play_wrong_set_knob(struct driver *x, int *status)
{
    enum {
        NONE = 99
    };

    FSDP_TRY(set(x, 0, NONE, 1.0f, status));
    return refused_by_name(x, NONE, *status);
}

int play_wrong_set_to_two(struct driver *x, int *status)
{
    return set(x, 0, FSDP_KNOB_GRADIENT_SYNC, 2.0f, status);
}

int play_wrong_set_to_nan(struct driver *x, int *status)
{
    return set(x, 0, FSDP_KNOB_ALL_REDUCE, NAN, status);
}

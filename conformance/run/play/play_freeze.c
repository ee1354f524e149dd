/* SPDX-License-Identifier: Apache-2.0 */
/*
 * play_freeze.c - freezes and thaws parameters while a model trains. The engine
 * is told; so are the workload, which asks the engine for gradients, and the
 * wire, which looks at what the engine sends. The model that the engine was
 * given stays as it was.
 */
#include "run/play/play.h"

#include <string.h>

static int set(struct driver *x, uint32_t p, uint32_t on)
{
    return x->engine.set_requires_grad
               ? x->engine.set_requires_grad(x->sharded, p, on)
               : FSDP_ERR_INVALID; /* the engine claims it */
}

/* A call about one name of a tied parameter changes the flags of all its
 * names. */
static int turn(struct driver *x, uint32_t p, bool freezes)
{
    FSDP_TRY(set(x, p, !freezes));
    for (uint32_t q = 0; q < x->model->n_parameters; q++) {
        if (fsdp_original(x->model, q) == fsdp_original(x->model, p)) {
            x->flags[q] &= ~(uint32_t)FSDP_FROZEN;
            x->flags[q] |= freezes ? FSDP_FROZEN : 0;
        }
    }
    return FSDP_OK;
}

int play_freeze(struct driver *x, const struct script_action *a)
{
    const bool all = a->parameter == SCRIPT_ALL;
    const uint32_t end = all ? x->model->n_parameters : a->parameter + 1;

    if (!all && a->parameter >= x->model->n_parameters) {
        return FSDP_ERR_INVALID;
    }
    for (uint32_t p = all ? 0 : a->parameter; p < end; p++) {
        FSDP_TRY(all && x->ignored[p] ? FSDP_OK
                                      : turn(x, p, a->verb == SCRIPT_FREEZE));
    }
    return wire_change(&x->wire, x->units, x->d->c->layout);
}

/* ---- Calls that must be refused ---------------------------------------- */

/* Asks of each parameter the opposite of what it is, so that no call is without
 * an effect. */
int play_wrong_freeze(struct driver *x, int *status)
{
    *status = FSDP_ERR_INVALID;
    for (uint32_t p = 0;
         p < x->model->n_parameters && *status == FSDP_ERR_INVALID; p++) {
        *x->env.error = (struct fsdp_error){0};
        *status = set(x, p, (x->flags[p] & FSDP_FROZEN) != 0);
    }
    return FSDP_OK;
}

int play_wrong_freeze_unknown(struct driver *x, int *status)
{
    const uint32_t n = x->model->n_parameters;

    *status = set(x, n, 0);
    return play_refused_by_number(x, "unnamed-parameter", n, *status);
}

int play_wrong_freeze_by_two(struct driver *x, int *status)
{
    *status = set(x, 0, 2);
    return FSDP_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * play_control.c - the calls of a script for single units, one or all of them;
 * and such calls that must be refused.
 */
#include "run/play/play.h"

/* A serial run, which plays all ranks, makes the call as each of them. */
int play_set(struct driver *x, const struct script_action *a)
{
    const uint32_t n = x->serial ? x->d->c->ranks : 1;
    int status = FSDP_OK;

    if (!x->engine.set) {
        return FSDP_ERR_INVALID; /* the engine claims it */
    }
    for (uint32_t r = 0; r < n && status == FSDP_OK; r++) {
        x->env.rank = x->serial ? r : x->env.rank;
        status = x->engine.set(x->sharded, a->unit, a->knob, a->value);
    }
    x->env.rank = x->serial ? 0 : x->env.rank;
    return status;
}

int play_by_hand(struct driver *x, uint32_t verb, uint32_t unit)
{
    if (!x->engine.unshard || !x->engine.reshard) {
        return FSDP_ERR_INVALID; /* the engine claims both */
    }
    return verb == SCRIPT_UNSHARD_UNIT ? x->engine.unshard(x->sharded, unit)
                                       : x->engine.reshard(x->sharded, unit);
}

/* Parameters that are unsharded at rest can be read. A serial run reshards them
 * as soon as they have been read. */
int play_unshard_unit(struct driver *x, const struct script_action *a)
{
    const struct fsdp_model *model = x->model;
    struct fsdp_tensor t;

    drive_place(x, RACE_AT_SUMMON, 0);
    FSDP_TRY(play_by_hand(x, SCRIPT_UNSHARD_UNIT, a->unit));
    for (uint32_t p = 0; p < model->n_parameters; p++) {
        if (fsdp_unit_of(model, x->units, p) != a->unit) {
            continue;
        }
        FSDP_TRY(x->engine.param(x->sharded, p, &t));
        FSDP_TRY(recorder_finish_compute(x->recorder));
        FSDP_TRY(recorder_tensor(x->recorder, x->out, RECORD_SUMMONED, x->step,
                                 0, p, 0, fsdp_numel(model, p), t.dtype,
                                 t.data));
    }
    return x->serial ? play_reshard_unit(x, a) : FSDP_OK;
}

int play_reshard_unit(struct driver *x, const struct script_action *a)
{
    return play_by_hand(x, SCRIPT_RESHARD_UNIT, a->unit);
}

/* ---- Calls that must be refused ---------------------------------------- */

static int set(struct driver *x, uint32_t unit, uint32_t knob, float value,
               int *status)
{
    *status = x->engine.set ? x->engine.set(x->sharded, unit, knob, value)
                            : FSDP_ERR_INVALID;
    return FSDP_OK;
}

int play_wrong_set(struct driver *x, const struct play_wrong *how, int *status)
{
    return set(x, how->unit, how->knob, how->value, status);
}

int play_wrong_set_unit(struct driver *x, int *status)
{
    const uint32_t n = x->units->n_units;

    FSDP_TRY(set(x, n, FSDP_KNOB_GRADIENT_SYNC, 0.0f, status));
    return play_refused_by_number(x, "unnamed-unit", n, *status);
}

int play_wrong_set_knob(struct driver *x, int *status)
{
    enum {
        NONE = 99
    };

    FSDP_TRY(set(x, 0, NONE, 1.0f, status));
    return play_refused_by_number(x, "unnamed-unit", NONE, *status);
}

int play_wrong_factor(struct driver *x, const struct play_wrong *how,
                      int *status)
{
    const uint32_t last = x->units->n_units - 1;
    const bool of_all = how->unit == FSDP_NO_UNIT;

    FSDP_TRY(set(x, of_all ? how->unit : last, how->knob, how->value, status));
    FSDP_TRY(of_all ? FSDP_OK
                    : play_refused_by_number(x, "unnamed-unit", last, *status));
    return play_refused_by_number(x, "unnamed-unit", how->knob, *status);
}

int play_wrong_by_hand(struct driver *x, const struct play_wrong *how,
                       int *status)
{
    *status = play_by_hand(x, how->verb, 0);
    return FSDP_OK;
}

int play_wrong_unknown_unit(struct driver *x, const struct play_wrong *how,
                            int *status)
{
    const uint32_t n = x->units->n_units;

    *status = play_by_hand(x, how->verb, n);
    return play_refused_by_number(x, "unnamed-unit", n, *status);
}

/* Reshards the unit whose module computes; if no module computes, or it is in
 * no unit, a unit that does not exist. */
int play_wrong_reshard_window(struct driver *x, int *status)
{
    const bool computes = x->point == FSDP_PRE_FORWARD ||
                          x->point == FSDP_PRE_BACKWARD ||
                          x->point == FSDP_PRE_RECOMPUTE;

    *status = play_by_hand(x, SCRIPT_RESHARD_UNIT,
                           computes ? x->units->unit_of_module[x->index]
                                    : FSDP_NO_UNIT);
    return FSDP_OK;
}

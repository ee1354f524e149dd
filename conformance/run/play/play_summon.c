/* SPDX-License-Identifier: Apache-2.0 */
/*
 * play_summon.c - unshards parameters so that they can be read: all, those of
 * one unit, or all on rank 0 alone; and makes such calls that must be refused.
 */
#include "run/play/play.h"

#include <string.h>

/* Whether a parameter is shown on this rank. A serial run, which plays all
 * ranks, shows every one, since it is compared with runs that have other
 * units. */
static bool shows(const struct driver *x, const struct script_action *a,
                  uint32_t p)
{
    const uint32_t unit = fsdp_unit_of(x->model, x->units, p);
    const bool some = a->verb == SCRIPT_SUMMON_SOME && !x->serial;

    return !x->ignored[p] &&
           (!some || a->unit == FSDP_NO_UNIT || a->unit == unit) &&
           (!some || !a->on_rank0 || x->env.rank == 0);
}

static int read_all(struct driver *x, const struct script_action *a)
{
    const struct fsdp_model *model = x->model;
    const uint32_t step = x->by_action ? x->step : x->d->c->steps;
    struct fsdp_tensor t;

    for (uint32_t p = 0; p < model->n_parameters; p++) {
        if (!shows(x, a, p)) {
            continue;
        }
        FSDP_TRY(x->engine.param(x->sharded, p, &t));
        FSDP_TRY(recorder_finish_compute(x->recorder));
        FSDP_TRY(recorder_tensor(x->recorder, x->out, RECORD_SUMMONED, step, 0,
                                 p, 0, fsdp_numel(model, p), t.dtype, t.data));
        if (a->verb != SCRIPT_SUMMON_SOME) {
            FSDP_TRY(play_keep_summoned(x, p, &t));
        }
    }
    return FSDP_OK;
}

/* A serial run has nothing to unshard. */
int play_unshard(struct driver *x, const struct script_action *a)
{
    if (!x->serial && !x->engine.unshard_all) {
        return FSDP_ERR_INVALID; /* the engine claims it */
    }
    drive_place(x, RACE_AT_SUMMON, 0);
    if (!x->serial) {
        FSDP_TRY(x->engine.unshard_all(x->sharded));
    }
    return read_all(x, a);
}

int play_reshard(struct driver *x, const struct script_action *a)
{
    (void)a;
    if (x->serial) {
        return FSDP_OK;
    }
    if (!x->engine.reshard_all) {
        return FSDP_ERR_INVALID; /* the engine claims it */
    }
    FSDP_TRY(x->engine.reshard_all(x->sharded));
    return drive_answer(x, "param-after-reshard-all",
                        play_ask_all(x, x->engine.param));
}

int play_summon(struct driver *x, const struct script_action *a)
{
    if (!x->engine.unshard_all && !(x->serial && x->by_action)) {
        return FSDP_OK;
    }
    FSDP_TRY(play_unshard(x, a));
    return play_reshard(x, a);
}

/* ---- Some of it ---------------------------------------------------------- */

static int summon(struct driver *x, const struct fsdp_summon *how)
{
    return x->engine.summon ? x->engine.summon(x->sharded, how)
                            : FSDP_ERR_INVALID; /* the engine claims it */
}

/* INVALID if every parameter that is not shown is refused; else the first other
 * answer. If all are shown there is no answer. */
static int ask_others(struct driver *x, const struct script_action *a)
{
    int status = FSDP_ERR_INVALID;
    bool asked = false;
    struct fsdp_tensor t;

    for (uint32_t p = 0;
         p < x->model->n_parameters && status == FSDP_ERR_INVALID; p++) {
        if (!shows(x, a, p)) {
            status = x->engine.param(x->sharded, p, &t);
            asked = true;
        }
    }
    return asked ? drive_answer(x, "param-not-summoned", status) : FSDP_OK;
}

int play_summon_some(struct driver *x, const struct script_action *a)
{
    const struct fsdp_summon how = {.size = sizeof(how),
                                    .one_unit = a->unit != FSDP_NO_UNIT,
                                    .unit = a->unit,
                                    .rank0_only = a->on_rank0};

    drive_place(x, RACE_AT_SUMMON, 0);
    if (x->serial) {
        return read_all(x, a);
    }
    FSDP_TRY(x->engine.summon ? play_summon_sizes(x, &how)
                              : FSDP_ERR_INVALID); /* the engine claims it */
    FSDP_TRY(read_all(x, a));
    FSDP_TRY(ask_others(x, a));
    return play_reshard(x, a);
}

/* ---- Calls that must be refused; *status is what the engine answered ----- */

/* Summons one unit on every rank. */
static int summon_unit(struct driver *x, uint32_t unit, int *status)
{
    const struct fsdp_summon how = {
        .size = sizeof(how), .one_unit = 1, .unit = unit};

    *status = summon(x, &how);
    return FSDP_OK;
}

int play_wrong_summon(struct driver *x, int *status)
{
    return summon_unit(x, 0, status);
}

int play_wrong_summon_unit(struct driver *x, int *status)
{
    FSDP_TRY(summon_unit(x, x->units->n_units, status));
    return play_refused_by_number(x, "unnamed-unit", x->units->n_units,
                                  *status);
}

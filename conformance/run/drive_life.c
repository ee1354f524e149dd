/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drive_life.c - the life of a case on one rank, from shard to destroy, as its
 * scenario says. A step of it is drive_step.c's.
 */
#include "run/drive.h"

#include <stdlib.h>
#include <string.h>

/* SUMMON: every parameter, as unshard_all shows it. */
static int unshard_all(struct driver *x)
{
    const struct fsdp_model *model = x->model;
    struct fsdp_tensor t;

    if (x->d->c->scenario != CASE_SUMMON || !x->engine.unshard_all) {
        return FSDP_OK;
    }
    drive_place(x, RACE_AT_SUMMON, 0);
    FSDP_TRY(x->engine.unshard_all(x->sharded));
    for (uint32_t p = 0; p < model->n_parameters; p++) {
        FSDP_TRY(x->engine.param(x->sharded, p, &t));
        FSDP_TRY(recorder_finish_compute(x->recorder));
        FSDP_TRY(recorder_tensor(x->recorder, x->out, RECORD_SUMMONED,
                                 x->d->c->steps, 0, p, 0, fsdp_numel(model, p),
                                 t.data));
    }
    FSDP_TRY(x->engine.reshard_all(x->sharded));
    return drive_answer(x, "param-after-reshard-all",
                        drive_ask_all(x, x->engine.param));
}

int drive_shard(struct driver *x)
{
    int64_t sequence;

    drive_place(x, RACE_AT_SHARD, 0);
    drive_tell_model(x);
    FSDP_TRY(drive_shard_model(x));
    sequence = recorder_mark(x->recorder);
    if (sequence < 0) {
        return FSDP_ERR_NOMEM;
    }
    x->out->shard_sequence = (uint32_t)sequence;
    recorder_rest(x->recorder, &x->out->memory.after_shard);
    (void)recorder_allocations(x->recorder);
    (void)recorder_launches(x->recorder);
    return x->d->c->recorded_steps ? drive_record_pieces(x, RECORD_INITIAL, 0)
                                   : FSDP_OK;
}

int drive_end_life(struct driver *x)
{
    int64_t sequence;

    FSDP_TRY(unshard_all(x));
    if (x->d->c->recorded_steps) {
        FSDP_TRY(drive_record_pieces(x, RECORD_FINAL, x->d->c->steps));
    }
    sequence = recorder_mark(x->recorder);
    if (sequence < 0) {
        return FSDP_ERR_NOMEM;
    }
    x->out->end_sequence = (uint32_t)sequence;
    return FSDP_OK;
}

static int train(struct driver *x)
{
    FSDP_TRY(drive_shard(x));
    FSDP_TRY(drive_open_run(x));
    for (uint32_t step = 0; step < x->d->c->steps; step++) {
        FSDP_TRY(drive_step(x, step));
    }
    FSDP_TRY(drive_end_life(x));
    return drive_abandon_pass(x);
}

void drive_end_of_run(struct driver *x)
{
    drive_place(x, RACE_AT_DESTROY, 0);
    x->workload->close(x->run);
    x->engine.destroy(x->sharded);
    x->run = NULL;
    x->sharded = NULL;
}

/* AGAIN: what the first life showed gives way to the second, but for its
 * losses. */
static void forget_first_life(struct record_rank *out)
{
    for (uint32_t i = 0; i < out->n_tensors; i++) {
        free(out->tensor[i].data);
    }
    out->n_tensors = 0;
    out->memory.n_moments = 0;
    memcpy(out->other_loss, out->loss, out->n_losses * sizeof(*out->loss));
    out->n_other_losses = out->n_losses;
    out->n_losses = 0;
    out->n_steps = 0;
}

int drive_live(struct driver *x)
{
    switch (x->d->c->scenario) {
    case CASE_OPTIONS:
        return drive_options(x);
    case CASE_DISAGREE:
        return drive_disagree(x);
    case CASE_AGAIN:
        FSDP_TRY(train(x));
        drive_end_of_run(x);
        forget_first_life(x->out);
        return train(x);
    case CASE_RESUME:
    case CASE_RESUME_FULL:
    case CASE_RESUME_LOCAL:
    case CASE_GROW:
    case CASE_SHRINK:
        return drive_resume(x);
    default:
        return x->d->saves_only ? drive_save_only(x) : train(x);
    }
}

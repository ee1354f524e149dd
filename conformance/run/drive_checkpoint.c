/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drive_checkpoint.c - two lives with a checkpoint between them. While it is
 * being written training goes on for a step, which is nobody's: the second
 * life plays that step again, from what was saved before it.
 */
#include "run/checkpoint_files.h"
#include "run/drive.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PATH_BYTES = 4160, /* a folder of records, and what is in it */
    SMALL_FILE = 4096  /* so that the full form has several */
};

/* Where things lie: NAME, NAME-again, NAME-wrong, NAME-missing. */
static const char *const suffixes[] = {"", "-again", "-wrong", "-missing"};

static void name_path(const struct driver *x, const char *suffix,
                      char path[PATH_BYTES])
{
    (void)snprintf(path, PATH_BYTES, "%s%s",
                   x->d->checkpoints ? x->d->checkpoints : "", suffix);
}

void drive_clear_checkpoints(const char *checkpoints)
{
    for (uint32_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        char path[PATH_BYTES];
        (void)snprintf(path, sizeof(path), "%s%s", checkpoints, suffixes[i]);
        checkpoint_files_remove(path);
    }
}

static bool is_complete(const struct driver *x)
{
    return x->engine.save_begin && x->engine.save_wait && x->engine.load &&
           x->engine.loaded_extra && x->d->checkpoints;
}

static bool has_own_saver(const struct driver *x)
{
    return x->d->c->scenario != CASE_GROW && x->d->c->scenario != CASE_SHRINK;
}

/* ---- The driver's own state -------------------------------------------- */

/* Where the run stands, of its data and its curve. */
struct position {
    uint64_t seed;
    uint32_t rank, step;
};

/* What a rank saves of its own: where it stands, the curve so far; and odd
 * ranks one thing more. */
static int save(struct driver *x, const char *directory)
{
    static const char *const name[] = {"position", "losses", "odd"};
    static const uint32_t form[] = {
        [CASE_RESUME_FULL] = FSDP_SAVE_FULL,
        [CASE_RESUME_LOCAL] = FSDP_SAVE_LOCAL,
        [CASE_RESUME] = FSDP_SAVE_SHARDED,
    };
    const struct run_case *c = x->d->c;
    struct position here = {c->seed, x->env.rank, c->steps / 2};
    const void *data[] = {&here, x->out->loss, &here.rank};
    const uint64_t bytes[] = {sizeof(here),
                              (uint64_t)here.step * c->microbatches *
                                  sizeof(*x->out->loss),
                              sizeof(here.rank)};
    struct fsdp_save s = {.size = sizeof(s),
                          .form = FSDP_SAVE_SHARDED,
                          .directory = directory,
                          .n_extra = 2 + x->env.rank % 2,
                          .extra_name = name,
                          .extra_data = data,
                          .extra_bytes = bytes,
                          .file_bytes = SMALL_FILE};

    if (c->scenario <= CASE_RESUME_LOCAL && c->scenario >= CASE_RESUME) {
        s.form = form[c->scenario];
    }
    s.rank0_only = s.form == FSDP_SAVE_FULL && c->wrap == CASE_WRAP_LAYER;
    return x->engine.save_begin(x->sharded, &s);
}

/* OK, or what loaded_extra answered, or MISMATCH. */
static int check_extra(struct driver *x, const char *name, const void *want,
                       uint64_t want_bytes)
{
    const void *data = NULL;
    uint64_t bytes = 0;
    int status = x->engine.loaded_extra(x->sharded, name, &data, &bytes);

    if (status != FSDP_OK) {
        return status;
    }
    return data && bytes == want_bytes && memcmp(data, want, bytes) == 0
               ? FSDP_OK
               : FSDP_ERR_MISMATCH;
}

/* This rank's own if it has saved it, else rank 0's, who has nothing odd. A
 * form in which one rank writes has that rank's alone. */
static int check_extras(struct driver *x)
{
    const struct run_case *c = x->d->c;
    bool alone = c->scenario == CASE_RESUME_FULL && c->wrap == CASE_WRAP_LAYER;
    bool own = has_own_saver(x) && !alone;
    struct position want = {c->seed, own ? x->env.rank : 0, c->steps / 2};
    int status = FSDP_OK;

    if (!alone || x->env.rank == 0) {
        status = check_extra(x, "position", &want, sizeof(want));
    }
    FSDP_TRY(drive_answer(x, "extra-position", status));
    status = FSDP_OK;
    if (own) {
        status = check_extra(x, "losses", x->out->loss,
                             (uint64_t)want.step * c->microbatches *
                                 sizeof(*x->out->loss));
    }
    FSDP_TRY(drive_answer(x, "extra-losses", status));
    status = FSDP_OK;
    if (!alone) {
        status = check_extra(x, "odd", &want.rank, sizeof(want.rank));
        if (!own || x->env.rank % 2 == 0) {
            status = status == FSDP_ERR_INVALID ? FSDP_OK : FSDP_ERR_MISMATCH;
        }
    }
    return drive_answer(x, "extra-of-some-ranks", status);
}

/* ---- Measured ----------------------------------------------------------- */

/* What is communicated beside steps belongs to no step. */
static int outside_steps(struct driver *x)
{
    (void)recorder_allocations(x->recorder);
    return recorder_mark(x->recorder) < 0 ? FSDP_ERR_NOMEM : FSDP_OK;
}

static int note_bytes(struct driver *x, const char *name, uint64_t bytes)
{
    return drive_answer_number(x, name, bytes);
}

/* ---- Saving ------------------------------------------------------------- */

/* The step that follows, while the checkpoint is being written. */
static int train_on(struct driver *x)
{
    x->step = x->d->c->steps / 2;
    x->recording = false;
    FSDP_TRY(drive_microbatches(x));
    return drive_optimize(x);
}

static int save_and_train(struct driver *x)
{
    char path[PATH_BYTES];
    uint64_t above;

    FSDP_TRY(
        drive_answer(x, "wait-before-save", x->engine.save_wait(x->sharded)));
    name_path(x, "", path);
    recorder_watch_peak(x->recorder);
    FSDP_TRY(save(x, path));
    above = recorder_watched_peak(x->recorder);
    FSDP_TRY(note_bytes(x, "save-above-rest", above));
    name_path(x, "-wrong", path);
    FSDP_TRY(drive_answer(x, "save-twice", save(x, path)));
    FSDP_TRY(train_on(x));
    FSDP_TRY(x->engine.save_wait(x->sharded));
    return outside_steps(x);
}

/* What was loaded, saved once more, is the same files. */
static int save_again(struct driver *x)
{
    char first[PATH_BYTES];
    char again[PATH_BYTES];
    int status = FSDP_OK;

    name_path(x, "", first);
    name_path(x, "-again", again);
    FSDP_TRY(save(x, again));
    FSDP_TRY(x->engine.save_wait(x->sharded));
    if (x->env.rank == 0) {
        status = checkpoint_files_equal(first, again);
        *x->env.error = (struct fsdp_error){status, 0, 0, "driver",
                                            "the two checkpoints differ"};
    }
    FSDP_TRY(drive_answer(x, "saved-again", status));
    return outside_steps(x);
}

int drive_save_only(struct driver *x)
{
    char path[PATH_BYTES];

    if (!is_complete(x)) {
        return FSDP_ERR_UNSUPPORTED;
    }
    FSDP_TRY(drive_shard(x));
    FSDP_TRY(drive_open_run(x));
    for (uint32_t step = 0; step < x->d->c->steps / 2; step++) {
        FSDP_TRY(drive_step(x, step));
    }
    name_path(x, "", path);
    FSDP_TRY(save(x, path));
    return x->engine.save_wait(x->sharded);
}

/* ---- Loading ------------------------------------------------------------ */

static int load(struct driver *x)
{
    uint32_t next = x->d->c->steps / 2;
    char path[PATH_BYTES];
    uint64_t above;

    name_path(x, "", path);
    recorder_watch_peak(x->recorder);
    FSDP_TRY(x->engine.load(x->sharded, path));
    above = recorder_watched_peak(x->recorder);
    FSDP_TRY(note_bytes(x, "load-above-rest", above));
    FSDP_TRY(outside_steps(x));
    if (x->d->c->recorded_steps > next) {
        FSDP_TRY(drive_record_pieces(x, RECORD_LOADED, next));
        FSDP_TRY(drive_record_pieces(x, RECORD_LOADED0, next));
        FSDP_TRY(drive_record_pieces(x, RECORD_LOADED1, next));
    }
    return check_extras(x);
}

/* Refused; the final weights show that nothing has changed. */
static int load_wrong(struct driver *x)
{
    char path[PATH_BYTES];
    uint64_t all[CASE_MAX_RANKS];
    uint64_t mine = 0;

    name_path(x, "-missing", path);
    FSDP_TRY(drive_answer(x, "load-missing", x->engine.load(x->sharded, path)));
    name_path(x, "", path);
    if (x->env.rank == 0) {
        FSDP_TRY(checkpoint_files_damage(path));
    }
    FSDP_TRY(x->env.exchange(x->env.exchange_self, &mine, sizeof(mine), all));
    FSDP_TRY(drive_answer(x, "load-damaged", x->engine.load(x->sharded, path)));
    return outside_steps(x);
}

/* Another life, of which the first steps were the other's. */
static int second_life(struct driver *x)
{
    FSDP_TRY(
        x->engine.shard(&x->env, x->model, x->units, &x->options, &x->sharded));
    FSDP_TRY(drive_open_run(x));
    FSDP_TRY(outside_steps(x));
    FSDP_TRY(load(x));
    if (has_own_saver(x)) {
        FSDP_TRY(save_again(x));
    }
    for (uint32_t step = x->d->c->steps / 2; step < x->d->c->steps; step++) {
        FSDP_TRY(drive_step(x, step));
    }
    FSDP_TRY(load_wrong(x));
    return drive_end_life(x);
}

int drive_resume(struct driver *x)
{
    if (!is_complete(x)) {
        return FSDP_ERR_UNSUPPORTED;
    }
    FSDP_TRY(drive_shard(x));
    FSDP_TRY(drive_open_run(x));
    for (uint32_t step = 0; step < x->d->c->steps / 2; step++) {
        FSDP_TRY(drive_step(x, step));
    }
    if (has_own_saver(x)) {
        FSDP_TRY(save_and_train(x));
    }
    drive_end_of_run(x);
    return second_life(x);
}

/* ---- Wrong calls --------------------------------------------------------- */

/* A save that was not refused is brought to its end. */
static int answer_save(struct driver *x, const char *name)
{
    char path[PATH_BYTES];
    int status;

    name_path(x, "-wrong", path);
    status = save(x, path);
    if (status == FSDP_OK) {
        FSDP_TRY(x->engine.save_wait(x->sharded));
    }
    return drive_answer(x, name, status);
}

int drive_wrong_checkpoint_in_pass(struct driver *x)
{
    char path[PATH_BYTES];

    if (x->recording) {
        FSDP_TRY(answer_save(x, "save-in-pass"));
        name_path(x, "-missing", path);
        return drive_answer(x, "load-in-pass",
                            x->engine.load(x->sharded, path));
    }
    return FSDP_OK;
}

int drive_wrong_save(struct driver *x)
{
    return x->recording ? answer_save(x, "save-with-gradients") : FSDP_OK;
}

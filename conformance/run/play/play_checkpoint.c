/* SPDX-License-Identifier: Apache-2.0 */
/*
 * play_checkpoint.c - saves and loads. As the caller's extras every rank saves
 * its position and its loss curve so far, and odd ranks one thing more.
 */
#include "checkpoint/checkpoint.h"
#include "checkpoint/folder_erase.h"
#include "run/play/checkpoint_files.h"
#include "run/play/play.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PATH_BYTES = 4160, /* a folder of records, and a name in it */
    SMALL_FILE = 4096  /* so small that the full form has several files */
};

/* Suffixes of paths: by slot, then that of a wrong save, and that of a
 * checkpoint that is never there. */
static const char *const suffixes[] = {"",   "-again", "-c",
                                       "-d", "-wrong", "-missing"};
enum {
    WRONG = SCRIPT_MAX_SLOTS,
    MISSING
};

static void name_path(const struct driver *x, uint32_t which,
                      char path[PATH_BYTES])
{
    snprintf(path, PATH_BYTES, "%s%s",
             x->d->checkpoints ? x->d->checkpoints : "", suffixes[which]);
}

void drive_clear_checkpoints(const char *checkpoints)
{
    for (uint32_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        char path[PATH_BYTES];
        snprintf(path, sizeof(path), "%s%s", checkpoints, suffixes[i]);
        folder_erase(path);
    }
}

/* The script's first save: the saves that must be refused have its form. */
static const struct script_action *first_save(const struct script *s)
{
    static const struct script_action sharded = {.form = FSDP_SAVE_SHARDED};

    for (uint32_t i = 0; i < s->n_actions; i++) {
        if (s->action[i].verb == SCRIPT_SAVE) {
            return &s->action[i];
        }
    }
    return &sharded;
}

/* Whether a call that must be refused is one of saving or loading. */
static bool is_wrong_save(uint32_t call)
{
    static const char *const begin[] = {"save-", "wait-", "load-"};
    const char *name = script_calls[call].name;
    bool is = false;

    for (size_t i = 0; i < sizeof(begin) / sizeof(begin[0]); i++) {
        is = is || strncmp(name, begin[i], strlen(begin[i])) == 0;
    }
    return is;
}

bool play_saves(const struct driver *x)
{
    const struct script *s = x->d->script;
    bool asked = s->given != 0;

    for (uint32_t i = 0; i < s->n_actions; i++) {
        const struct script_action *a = &s->action[i];

        asked = asked || a->verb == SCRIPT_SAVE || a->verb == SCRIPT_LOAD ||
                (a->verb == SCRIPT_WRONG && is_wrong_save(a->call));
    }
    for (uint32_t i = 0; i < s->n_inside; i++) {
        asked = asked || (s->inside[i].sync == SCRIPT_SYNC_UNSAID &&
                          is_wrong_save(s->inside[i].call));
    }
    return asked;
}

/* ---- The driver's own state -------------------------------------------- */

/* The position of the run in its data and its curve. */
struct position {
    uint64_t seed;
    uint32_t rank, step;
};

static uint64_t curve_bytes(const struct driver *x, uint32_t steps)
{
    return (uint64_t)steps * case_losses_a_step(x->d->c) *
           sizeof(*x->out->loss);
}

static int save(struct driver *x, const struct script_action *a, uint32_t where)
{
    static const char *const name[] = {"position", "losses", "odd"};
    struct position here = {x->d->c->seed, x->env.rank, x->out->n_steps};
    const void *data[] = {&here, x->out->loss, &here.rank};
    const uint64_t bytes[] = {sizeof(here), curve_bytes(x, here.step),
                              sizeof(here.rank)};
    char path[PATH_BYTES];
    const struct fsdp_save s = {.size = sizeof(s),
                                .form = a->form,
                                .directory = path,
                                .rank0_only = a->rank0_only,
                                .n_extra = 2 + x->env.rank % 2,
                                .extra_name = name,
                                .extra_data = data,
                                .extra_bytes = bytes,
                                .file_bytes = SMALL_FILE,
                                .what = a->what,
                                .dtype = a->dtype};

    name_path(x, where, path);
    return play_save_sizes(x, &s);
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

/* Checks that loaded_extra has nothing, where extras were not saved. */
static int check_no_extras(struct driver *x)
{
    static const char *const name[] = {"position", "losses", "odd"};
    int status = FSDP_OK;

    for (uint32_t i = 0; i < 3 && status == FSDP_OK; i++) {
        status = check_extra(x, name[i], "", 0) == FSDP_ERR_INVALID
                     ? FSDP_OK
                     : FSDP_ERR_MISMATCH;
    }
    *x->env.error = (struct fsdp_error){status, (int32_t)x->env.rank, 0,
                                        "driver", "it was not to be saved"};
    return drive_answer(x, "parts-extra", status);
}

static bool has_extras(const struct driver *x, uint32_t slot)
{
    return x->saved_parts[slot] == 0 ||
           (x->saved_parts[slot] & FSDP_SAVE_EXTRA) != 0;
}

/* Checks that the extras are this rank's own if it saved them, else rank 0's,
 * which has no odd one. If only one rank wrote, they are looked at there. */
static int check_extras(struct driver *x, uint32_t slot)
{
    bool given = (x->d->script->given >> slot & 1) != 0;
    bool alone = !given && x->saved_alone[slot];
    bool own = !given && !alone;
    struct position want = {x->d->c->seed, own ? x->env.rank : 0,
                            given ? x->out->n_steps : x->saved_step[slot]};
    int status = FSDP_OK;

    if (!has_extras(x, slot)) {
        return check_no_extras(x);
    }
    if (!alone || x->env.rank == 0) {
        status = check_extra(x, "position", &want, sizeof(want));
    }
    FSDP_TRY(drive_answer(x, "extra-position", status));
    status = FSDP_OK;
    if (own) {
        status =
            check_extra(x, "losses", x->out->loss, curve_bytes(x, want.step));
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

/* ---- Actions: of who plays all ranks numbers alone are wanted ------------ */

/* recorder_watched_peak is called before a failure is looked at, so that the
 * recorded peaks are right in any case. */
int play_save(struct driver *x, const struct script_action *a)
{
    uint64_t above;
    int status;

    x->saving = true;
    x->kept[a->slot] = x->scaler;
    x->saved_step[a->slot] = x->out->n_steps;
    x->saved_alone[a->slot] = a->rank0_only;
    x->saved_parts[a->slot] = a->what;
    x->extras = x->extras == a->slot + 1 ? 0 : x->extras; /* the save in that
                                                             slot is another one
                                                             now */
    x->saved_dtype[a->slot] = a->dtype;
    FSDP_TRY(play_save_names(x, a));
    recorder_watch_peak(x->recorder);
    status = save(x, a, a->slot);
    above = recorder_watched_peak(x->recorder);
    FSDP_TRY(status);
    if (a == first_save(x->d->script) && !x->serial) {
        FSDP_TRY(drive_answer_number(x, "save-above-rest", above));
    }
    return x->by_action ? play_note_outside(x) : FSDP_OK;
}

/* Checks that what was loaded is saved as the same files once more. */
static int check_same(struct driver *x, const struct script_action *a)
{
    char first[PATH_BYTES];
    char again[PATH_BYTES];
    int status = FSDP_OK;

    name_path(x, a->same_slot, first);
    name_path(x, a->slot, again);
    if (x->env.rank == 0) {
        status = checkpoint_files_equal(first, again);
        *x->env.error = (struct fsdp_error){status, 0, 0, "driver",
                                            "the two checkpoints differ"};
    }
    return drive_answer(x, "saved-again", status);
}

/* Whether a name is one of the tensors of a checkpoint, or of their states. */
static int is_saved(const char *path, const char *name, bool *found)
{
    char text[400];

    snprintf(text, sizeof(text), "\"%s\"", name);
    FSDP_TRY(checkpoint_files_have(path, text, found));
    snprintf(text, sizeof(text), "\"optim.state.%s.", name);
    return *found ? FSDP_OK : checkpoint_files_have(path, text, found);
}

/* Tied parameters are saved under their original's name alone. Local saves have
 * no names of parameters. */
static int check_ties(struct driver *x, const struct script_action *a)
{
    char path[PATH_BYTES];
    int status = FSDP_OK;

    name_path(x, a->slot, path);
    for (uint32_t p = 0; p < x->model->n_parameters && x->env.rank == 0; p++) {
        bool found = false;

        if (fsdp_original(x->model, p) != p) {
            FSDP_TRY(is_saved(path, x->model->parameter_name[p], &found));
        }
        status = found ? FSDP_ERR_MISMATCH : status;
    }
    if (status != FSDP_OK) {
        *x->env.error = (struct fsdp_error){status, 0, 0, "driver",
                                            "a tied parameter is saved twice"};
    }
    return drive_answer(x, "saved-tied", status);
}

int play_wait(struct driver *x, const struct script_action *a)
{
    FSDP_TRY(x->engine.save_wait(x->sharded));
    x->saving = false;
    if (case_is_tied(x->d->c) && !x->serial && !x->by_action) {
        FSDP_TRY(check_ties(x, a));
    }
    if (case_has_buffers(x->d->c) && !x->serial && !x->by_action) {
        char path[PATH_BYTES];

        name_path(x, a->slot, path);
        FSDP_TRY(play_saved_buffers(x, path));
    }
    if (x->saved_dtype[a->slot] && !x->serial) {
        char path[PATH_BYTES];

        name_path(x, a->slot, path);
        FSDP_TRY(play_saved_dtype(x, path, a->slot));
    }
    if (a->same && !x->serial) {
        FSDP_TRY(check_same(x, a));
    }
    return play_note_outside(x);
}

static int load_checkpoint(struct driver *x, const struct script_action *a,
                           const char *path)
{
    const struct fsdp_load how = {
        .size = sizeof(how), .lenient = 1, .directory = path};

    if (!a->lenient) {
        return x->engine.load(x->sharded, path);
    }
    return x->engine.load_from ? play_load_from_sizes(x, &how)
                               : FSDP_ERR_INVALID; /* the engine claims it */
}

int play_load(struct driver *x, const struct script_action *a)
{
    const bool given = (x->d->script->given >> a->slot & 1) != 0;
    char path[PATH_BYTES];
    uint64_t above;
    int status;

    name_path(x, a->slot, path);
    recorder_watch_peak(x->recorder);
    status = load_checkpoint(x, a, path);
    above = recorder_watched_peak(x->recorder);
    FSDP_TRY(status);
    if (a->lenient && !x->serial) {
        FSDP_TRY(play_check_names(x, a->slot));
    }
    x->unscaled = false;
    if (x->kept[a->slot].scale != 0.0f) {
        x->scaler = x->kept[a->slot];
    }
    if (!x->serial && !x->by_action) { /* in a run by actions the load may be of
                                          any moment */
        FSDP_TRY(drive_answer_number(x, "load-above-rest", above));
    }
    FSDP_TRY(play_note_outside(x));
    x->extras =
        x->by_action && !given && has_extras(x, a->slot) ? a->slot + 1 : 0;
    return x->serial || (x->by_action && given) ? FSDP_OK
                                                : check_extras(x, a->slot);
}

/* ---- Wrong calls --------------------------------------------------------- */

/* A save that was not refused is brought to its end. */
int play_wrong_save(struct driver *x, const struct play_wrong *how, int *status)
{
    struct script_action a = *first_save(x->d->script);

    a.what = how->what != 0 ? how->what : a.what;
    if (how->dtype != FSDP_DTYPE_NONE) {
        a.dtype = how->dtype;
        a.form = how->form;
    }
    *status = save(x, &a, WRONG);
    return *status == FSDP_OK ? x->engine.save_wait(x->sharded) : FSDP_OK;
}

int play_wrong_save_twice(struct driver *x, int *status)
{
    *status = save(x, first_save(x->d->script), WRONG);
    return FSDP_OK;
}

int play_wrong_load_missing(struct driver *x, int *status)
{
    char path[PATH_BYTES];

    name_path(x, MISSING, path);
    *status = x->engine.load(x->sharded, path);
    return FSDP_OK;
}

int play_behind_load(struct driver *x, uint32_t call)
{
    const bool is_load = strncmp(script_calls[call].name, "load-", 5) == 0;

    FSDP_TRY(is_load && x->extras != 0 ? check_extras(x, x->extras - 1)
                                       : FSDP_OK);
    return call == SCRIPT_CALL_LOAD_DAMAGED ? play_note_outside(x) : FSDP_OK;
}

/* Rank 0 damages the checkpoint, and no rank loads it before that. */
int play_wrong_load_damaged(struct driver *x, int *status)
{
    char path[PATH_BYTES];
    uint64_t all[CASE_MAX_RANKS];
    uint64_t mine = 0;

    name_path(x, 0, path);
    if (x->env.rank == 0) {
        FSDP_TRY(checkpoint_files_damage(path));
    }
    FSDP_TRY(drive_exchange(x, &mine, sizeof(mine), all));
    *status = x->engine.load(x->sharded, path);
    return FSDP_OK;
}

/* Loads slot 0, in which something is missing; the refusal has to name a
 * parameter of which it may be. */
static int load_lacking(struct driver *x,
                        bool (*may)(const struct driver *x, uint32_t p),
                        int *status)
{
    bool named = false;
    char path[PATH_BYTES];

    name_path(x, 0, path);
    *status = x->engine.load(x->sharded, path);
    for (uint32_t p = 0; p < x->model->n_parameters; p++) {
        named = named || (may(x, p) &&
                          play_says(x->env.error, x->model->parameter_name[p]));
    }
    return *status == FSDP_OK || named
               ? FSDP_OK
               : drive_answer_number(x, "unnamed-parameter", 0);
}

static bool is_trained(const struct driver *x, uint32_t p)
{
    return (x->flags[p] & FSDP_FROZEN) == 0;
}

static bool is_renamed(const struct driver *x, uint32_t p)
{
    return x->renamed == 0 || x->renamed == p + 1;
}

/* Loads a checkpoint from before a parameter was thawed: the refusal has to
 * name one whose states are missing. */
int play_wrong_load_stateless(struct driver *x, int *status)
{
    return load_lacking(x, is_trained, status);
}

static bool is_any(const struct driver *x, uint32_t p)
{
    return !x->ignored[p];
}

/* Loads a checkpoint that has no parameters, or rounded ones. */
int play_wrong_load_other(struct driver *x, int *status)
{
    return load_lacking(x, is_any, status);
}

int play_wrong_load_renamed(struct driver *x, int *status)
{
    return load_lacking(x, is_renamed, status);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * play_buffers.c - checks and records the model's buffers: as a forward finds
 * them, as it leaves them, and as they rest.
 */
#include "run/play/checkpoint_files.h"
#include "run/play/play.h"

#include <stdio.h>
#include <string.h>

static bool is_known(uint32_t dtype)
{
    return record_digits(dtype) > 0;
}

/* Whether the buffer can be read: it is lent in one dimension, dense, on the
 * device, and with no more elements than it has. */
static bool is_readable(const struct driver *x, uint32_t b,
                        const struct fsdp_tensor *t)
{
    return t->data && t->n_dims == 1 && is_known(t->dtype) &&
           t->place == x->env.device->place &&
           (t->shape[0] < 2 || t->stride[0] == 1) &&
           t->shape[0] <= x->model->buffer_numel[b];
}

static int record(struct driver *x, uint32_t stage, uint32_t step,
                  uint32_t microbatch, uint32_t b, const struct fsdp_tensor *t)
{
    if (!is_readable(x, b, t) || t->shape[0] == 0 ||
        recorder_has(x->out, stage, step, microbatch, b, 0)) {
        return FSDP_OK;
    }
    FSDP_TRY(recorder_finish_compute(x->recorder));
    return recorder_tensor(x->recorder, x->out, stage, step, microbatch, b, 0,
                           t->shape[0], t->dtype, t->data);
}

int play_lend_buffer(void *self, uint32_t b, struct fsdp_tensor *out)
{
    struct driver *x = self;

    memset(out, 0, sizeof(*out));
    if (!x->engine.buffer) {
        return FSDP_ERR_INVALID; /* the engine claims it */
    }
    FSDP_TRY(x->engine.buffer(x->sharded, b, out));
    if (x->recording) {
        FSDP_TRY(record(x, RECORD_BUFFER_SEEN, x->step, x->microbatch, b, out));
    }
    if (!is_readable(x, b, out) || out->shape[0] != x->model->buffer_numel[b]) {
        out->data = NULL;
    }
    x->lent_buffer[b] = *out;
    return FSDP_OK;
}

int play_buffers_left(struct driver *x)
{
    for (uint32_t b = 0; b < x->model->n_buffers; b++) {
        if (x->recording && x->lent_buffer[b].data) {
            FSDP_TRY(record(x, RECORD_BUFFER_LEFT, x->step, x->microbatch, b,
                            &x->lent_buffer[b]));
        }
        x->lent_buffer[b].data = NULL;
    }
    return FSDP_OK;
}

static int look_at_buffers(struct driver *x, uint32_t stage, uint32_t step)
{
    for (uint32_t b = 0; b < x->model->n_buffers; b++) {
        struct fsdp_tensor t = {0};

        FSDP_TRY(x->engine.buffer(x->sharded, b, &t));
        FSDP_TRY(record(x, stage, step, 0, b, &t));
    }
    return FSDP_OK;
}

/* A serial run, which plays all ranks, records the buffers of each. */
int play_look_at_buffers(struct driver *x, uint32_t stage, uint32_t step)
{
    struct record_rank *all = x->out;

    if (!x->engine.buffer) {
        return FSDP_OK;
    }
    for (uint32_t r = 0; x->serial && r < x->d->c->ranks; r++) {
        x->env.rank = r;
        x->out = &all[r];
        FSDP_TRY(look_at_buffers(x, stage, step));
    }
    if (x->serial) {
        x->env.rank = 0;
        x->out = all;
        return FSDP_OK;
    }
    return look_at_buffers(x, stage, step);
}

/* ---- What is saved ------------------------------------------------------ */

/* Whether the checkpoint has a tensor of that name, as safetensors describe
 * it. */
static int find(const char *path, const char *name, const char *dtype,
                bool *found)
{
    char text[400];

    snprintf(text, sizeof(text), "\"%s\":{\"dtype\":\"%s", name, dtype);
    return checkpoint_files_have(path, text, found);
}

/* Checks safetensors alone: an engine may name tensors otherwise in a format of
 * its own. */
static int check_dtype(const char *path, const char *name, uint32_t dtype,
                       bool *wrong)
{
    static const char *const dtypes[] = {
        [FSDP_DTYPE_F32] = "F32\"", [FSDP_DTYPE_BF16] = "BF16\"",
        [FSDP_DTYPE_F16] = "F16\"", [FSDP_DTYPE_I32] = "I32\"",
        [FSDP_DTYPE_I64] = "I64\"", [FSDP_DTYPE_U8] = "U8\""};
    bool any = false;
    bool right = false;

    FSDP_TRY(find(path, name, "", &any));
    FSDP_TRY(find(path, name, dtypes[dtype], &right));
    *wrong = *wrong || (any && !right);
    return FSDP_OK;
}

static int check_buffer(const struct driver *x, const char *path, uint32_t b,
                        bool *wrong_dtype, bool *transient)
{
    const char *name = x->model->buffer_name[b];
    bool any = false;

    if ((x->model->buffer_flags[b] & FSDP_NOT_PERSISTED) == 0) {
        return check_dtype(path, name, x->model->buffer_dtype[b], wrong_dtype);
    }
    FSDP_TRY(find(path, name, "", &any));
    *transient = *transient || any;
    return FSDP_OK;
}

static int answer(struct driver *x, const char *name, bool wrong,
                  const char *words)
{
    const int status = wrong ? FSDP_ERR_MISMATCH : FSDP_OK;

    if (wrong) {
        *x->env.error = (struct fsdp_error){
            .status = status, .rank = (int32_t)x->env.rank, .where = "driver"};
        snprintf(x->env.error->message, sizeof(x->env.error->message), "%s",
                 words);
    }
    return drive_answer(x, name, status);
}

int play_saved_buffers(struct driver *x, const char *path)
{
    bool wrong_dtype = false;
    bool transient = false;

    for (uint32_t b = 0; x->env.rank == 0 && b < x->model->n_buffers; b++) {
        FSDP_TRY(check_buffer(x, path, b, &wrong_dtype, &transient));
    }
    FSDP_TRY(answer(x, "saved-buffer-dtype", wrong_dtype,
                    "a buffer is saved in another dtype"));
    return answer(x, "saved-transient", transient,
                  "a buffer is saved that is not persisted");
}

/* A save without parameters leaves those of an earlier save in its folder,
 * which are not looked at. */
int play_saved_dtype(struct driver *x, const char *path, uint32_t slot)
{
    const uint32_t parts = x->saved_parts[slot];
    const bool any = parts == 0 || (parts & FSDP_SAVE_PARAMETERS) != 0;
    bool wrong = false;

    for (uint32_t p = 0; any && x->env.rank == 0 && p < x->model->n_parameters;
         p++) {
        FSDP_TRY(check_dtype(path, x->told.parameter_name[p],
                             x->saved_dtype[slot], &wrong));
    }
    return answer(x, "saved-dtype", wrong,
                  "a parameter is saved in another dtype");
}

/* ---- Wrong calls -------------------------------------------------------- */

int play_wrong_buffer(struct driver *x, int *status)
{
    const uint32_t n = x->model->n_buffers;
    struct fsdp_tensor t;

    *status = x->engine.buffer ? x->engine.buffer(x->sharded, n, &t)
                               : FSDP_ERR_INVALID;
    return !x->engine.buffer || *status == FSDP_OK ||
                   play_says_number(x->env.error, n)
               ? FSDP_OK
               : drive_answer_number(x, "unnamed-buffer", 0);
}

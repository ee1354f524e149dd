/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compute.c - activations of a pass, and the way to weights, gradients and
 * the loss. The operators are in compute_op.c.
 */
#include "compute.h"

#include "batch.h"

#include <fsdp/arith/cast.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Ignored parameters are the model's own, and so held here: makes their storage
 * and initial values. */
static int hold_ignored(struct compute *c)
{
    const struct fsdp_model *model = c->model;
    const bool *ignored = c->access.ignored;
    uint64_t n = 0;
    int status = FSDP_OK;

    for (uint32_t p = 0; p < model->n_parameters; p++) {
        n += ignored[p] ? fsdp_numel(model, p) : 0;
    }
    c->held = calloc(model->n_parameters + (size_t)1, sizeof(*c->held));
    c->initial = calloc(n + 1, sizeof(*c->initial));
    if (!c->held || !c->initial) {
        return batch_fail(c->error, FSDP_ERR_NOMEM, "workload",
                          "no memory for what is ignored");
    }
    n = 0;
    for (uint32_t p = 0; p < model->n_parameters && status == FSDP_OK; p++) {
        const uint64_t numel = fsdp_numel(model, p);

        if (ignored[p]) {
            status =
                model->initial(model->context, p, 0, numel, c->initial + n);
            n += numel;
        }
        if (ignored[p] && status == FSDP_OK) {
            status = compute_alloc(c, numel, &c->held[p]);
        }
    }
    return status;
}

/* Ignored parameters are live during a pass, as activations are. */
static int upload_ignored(struct compute *c)
{
    uint64_t n = 0;

    for (uint32_t p = 0; c->held && p < c->model->n_parameters; p++) {
        if (c->held[p]) {
            FSDP_TRY(compute_upload(c, c->held[p], c->initial + n,
                                    fsdp_numel(c->model, p)));
            n += fsdp_numel(c->model, p);
        }
    }
    return FSDP_OK;
}

int compute_open(struct compute *c, const struct fsdp_model *model,
                 const struct fsdp_device *device, struct fsdp_stream *stream,
                 const struct workload_access *access, uint64_t grains,
                 struct fsdp_error *error)
{
    memset(c, 0, sizeof(*c));
    c->model = model;
    c->device = device;
    c->stream = stream;
    c->access = *access;
    c->grains = grains;
    c->error = error;
    FSDP_TRY(compute_alloc(c, 1, &c->sum));
    return access->ignored ? hold_ignored(c) : FSDP_OK;
}

int compute_alloc(struct compute *c, uint64_t n, void *out)
{
    const uint64_t bytes = n * 4;
    struct compute_buffer *grown;
    void *p = NULL;
    int status;

    grown = realloc(c->buffer, (c->n_buffers + 1) * sizeof(*grown));
    if (!grown) {
        return batch_fail(c->error, FSDP_ERR_NOMEM, "workload",
                          "no memory for the list of activations");
    }
    c->buffer = grown;
    status = c->device->alloc(c->device->self, bytes, &p);
    if (status != FSDP_OK) {
        return batch_fail(c->error, status, "workload",
                          "no memory for an activation of %llu bytes",
                          (unsigned long long)bytes);
    }
    c->buffer[c->n_buffers++] = (struct compute_buffer){
        .p = p, .bytes = bytes, .checkpoint = c->checkpoint};
    memcpy(out, &p, sizeof(p));
    return FSDP_OK;
}

static void set_live(struct compute *c, struct compute_buffer *b, bool live)
{
    if (live && !b->live) {
        c->device->live(c->device->self, c->stream, FSDP_ACTIVATION,
                        FSDP_NO_UNIT, b->p, b->bytes);
    } else if (!live && b->live) {
        c->device->dead(c->device->self, c->stream, b->p);
    }
    b->live = live;
}

static void all_dead(struct compute *c)
{
    for (uint32_t i = 0; i < c->n_buffers; i++) {
        set_live(c, &c->buffer[i], false);
    }
    c->live = false;
}

static void set_checkpoint(struct compute *c, uint32_t checkpoint, bool live)
{
    for (uint32_t i = 0; i < c->n_buffers; i++) {
        if (c->buffer[i].checkpoint == checkpoint) {
            set_live(c, &c->buffer[i], live);
        }
    }
}

void compute_enter(struct compute *c, uint32_t checkpoint)
{
    if (checkpoint != 0) {
        set_checkpoint(c, checkpoint, true);
    }
}

void compute_leave(struct compute *c, uint32_t checkpoint)
{
    if (checkpoint != 0) {
        set_checkpoint(c, checkpoint, false);
    }
}

void compute_close(struct compute *c)
{
    if (c->device) {
        if (c->live) {
            all_dead(c);
        }
        /* Work in flight, such as the poisoning of dead memory, may still use
         * the storage, so it is waited for; whether it failed changes nothing
         * any more. */
        (void)c->device->sync(c->device->self, c->stream);
    }
    for (uint32_t i = 0; c->device && i < c->n_buffers; i++) {
        c->device->free(c->device->self, c->buffer[i].p);
    }
    free(c->buffer);
    free(c->wide);
    free(c->held);
    free(c->initial);
    memset(c, 0, sizeof(*c));
}

int compute_begin(struct compute *c)
{
    if (c->live) {
        return batch_fail(c->error, FSDP_ERR_INVALID, "workload",
                          "a pass begins before the last one has ended");
    }
    c->live = true;
    c->have_loss = false;
    set_checkpoint(c, 0, true);
    return upload_ignored(c);
}

int compute_upload(struct compute *c, void *to, const void *from, uint64_t n)
{
    const int status =
        c->device->copy(c->device->self, c->stream, to, from, n * 4);

    if (status != FSDP_OK) {
        return batch_fail(c->error, status, "workload",
                          "samples were not copied: %s",
                          fsdp_status_text(status));
    }
    return FSDP_OK;
}

int compute_end(struct compute *c, float *out_loss)
{
    float loss = NAN;
    int status = FSDP_OK;
    int synced;

    if (!c->live) {
        return batch_fail(c->error, FSDP_ERR_INVALID, "workload",
                          "a pass ends that has not begun");
    }
    if (c->have_loss) {
        status = c->device->copy(c->device->self, c->stream, &loss, c->sum,
                                 sizeof(loss));
    }
    /* Waits, as the host now reads the loss, and may overwrite its samples. */
    synced = c->device->sync(c->device->self, c->stream);
    all_dead(c);
    if (out_loss) {
        *out_loss = loss;
    }
    status = status != FSDP_OK ? status : synced;
    if (status != FSDP_OK) {
        return batch_fail(c->error, status, "workload",
                          "the loss was not fetched: %s",
                          fsdp_status_text(status));
    }
    return FSDP_OK;
}

/* Refuses a tensor that operators cannot take: they know no strides, and need
 * pointers of the device. */
static int check_tensor(struct compute *c, uint32_t p, const char *what,
                        int status, const struct fsdp_tensor *t)
{
    uint64_t numel = 1;
    uint64_t dense = 1;

    if (status != FSDP_OK) {
        return batch_fail(c->error, status, "workload", "%s %s: %s",
                          c->model->parameter_name[p], what,
                          fsdp_status_text(status));
    }
    for (uint32_t d = 0; d < t->n_dims && d < FSDP_MAX_DIMS; d++) {
        numel *= t->shape[d];
    }
    for (uint32_t d = t->n_dims; d > 0 && d <= FSDP_MAX_DIMS; d--) {
        if (t->shape[d - 1] > 1 && t->stride[d - 1] != (int64_t)dense) {
            dense = 0;
            break;
        }
        dense *= t->shape[d - 1];
    }
    if (t->dtype < FSDP_DTYPE_F32 || t->dtype > FSDP_DTYPE_F16) {
        return batch_fail(c->error, FSDP_ERR_UNSUPPORTED, "workload",
                          "%s %s: dtype %u is none of float32 (1), bf16 (2), "
                          "f16 (3)",
                          c->model->parameter_name[p], what,
                          (unsigned)t->dtype);
    }
    if ((!t->data && fsdp_numel(c->model, p) > 0) ||
        t->place != c->device->place || t->n_dims > FSDP_MAX_DIMS ||
        numel != fsdp_numel(c->model, p) || (numel > 0 && dense != numel)) {
        return batch_fail(c->error, FSDP_ERR_MISMATCH, "workload",
                          "%s %s: not %llu dense elements on the device",
                          c->model->parameter_name[p], what,
                          (unsigned long long)fsdp_numel(c->model, p));
    }
    return FSDP_OK;
}

/* The float32 copy of n elements that are lent in 16 bits. It is made when it
 * is first needed, and kept as all activations are. */
static int wide_of(struct compute *c, uint32_t index, uint32_t what, uint64_t n,
                   struct compute_wide **out)
{
    struct compute_wide *grown;

    for (uint32_t i = 0; i < c->n_wide; i++) {
        *out = &c->wide[i];
        if ((*out)->index == index && (*out)->what == what) {
            return FSDP_OK;
        }
    }
    grown = realloc(c->wide, (c->n_wide + 1) * sizeof(*grown));
    if (!grown) {
        (void)batch_fail(c->error, FSDP_ERR_NOMEM, "workload",
                         "no memory for the list of casts");
        return FSDP_ERR_NOMEM;
    }
    c->wide = grown;
    *out = &grown[c->n_wide];
    **out = (struct compute_wide){.index = index, .what = what, .n = n};
    FSDP_TRY(compute_alloc(c, n, &(*out)->wide));
    c->n_wide++;
    if (c->live) {
        set_live(c, &c->buffer[c->n_buffers - 1], true);
    }
    return FSDP_OK;
}

int compute_param(struct compute *c, uint32_t p, const float **out)
{
    struct fsdp_tensor t = {0};
    struct compute_wide *w;
    int status;

    if (c->held && c->held[p]) {
        *out = c->held[p];
        return FSDP_OK;
    }
    status = c->access.param(c->access.self, p, &t);
    FSDP_TRY(check_tensor(c, p, "param", status, &t));
    *out = t.data;
    if (t.dtype == FSDP_DTYPE_F32) {
        return FSDP_OK;
    }
    FSDP_TRY(wide_of(c, p, COMPUTE_PARAM, fsdp_numel(c->model, p), &w));
    *out = w->wide;
    return compute_cast(c, w->n, t.dtype, t.data, FSDP_DTYPE_F32, w->wide);
}

int compute_grad(struct compute *c, uint32_t p, float **out)
{
    struct fsdp_tensor t = {0};
    struct compute_wide *w;
    const uint32_t *flags =
        c->access.flags ? c->access.flags : c->model->parameter_flags;
    int status;

    *out = NULL;
    if ((flags[p] & FSDP_FROZEN) != 0 || (c->held && c->held[p])) {
        return FSDP_OK;
    }
    status = c->access.grad(c->access.self, p, &t);
    FSDP_TRY(check_tensor(c, p, "grad", status, &t));
    *out = t.data;
    if (t.dtype == FSDP_DTYPE_F32) {
        return FSDP_OK;
    }
    FSDP_TRY(wide_of(c, p, COMPUTE_GRAD, fsdp_numel(c->model, p), &w));
    /* It is set. NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
    w->narrow = t.data;
    w->dtype = t.dtype;
    *out = w->wide;
    return FSDP_OK;
}

static int lend_buffer(struct compute *c, uint32_t b, struct fsdp_tensor *out)
{
    int status;

    memset(out, 0, sizeof(*out));
    if (!c->access.buffer) {
        return FSDP_OK;
    }
    status = c->access.buffer(c->access.self, b, out);
    return status == FSDP_OK
               ? FSDP_OK
               : batch_fail(c->error, status, "workload", "buffer %s: %s",
                            c->model->buffer_name[b], fsdp_status_text(status));
}

int compute_buffer(struct compute *c, uint32_t b, void **out)
{
    struct fsdp_tensor t;

    FSDP_TRY(lend_buffer(c, b, &t));
    *out = t.dtype == c->model->buffer_dtype[b] ? t.data : NULL;
    return FSDP_OK;
}

int compute_float_buffer(struct compute *c, uint32_t b, float **out)
{
    struct compute_wide *w = NULL;
    struct fsdp_tensor t;

    FSDP_TRY(lend_buffer(c, b, &t));
    *out = t.dtype == FSDP_DTYPE_F32 ? t.data : NULL;
    if (!t.data || *out || !fsdp_is_float(t.dtype)) {
        return FSDP_OK;
    }
    FSDP_TRY(wide_of(c, b, COMPUTE_BUFFER, c->model->buffer_numel[b], &w));
    if (!w) {
        return FSDP_ERR_INTERNAL; /* cannot be: it has just been found, or
                                   * made */
    }
    w->narrow = t.data;
    w->dtype = t.dtype;
    *out = w->wide;
    return compute_cast(c, w->n, t.dtype, t.data, FSDP_DTYPE_F32, w->wide);
}

int compute_fetch(struct compute *c, void *to, const void *from, uint64_t bytes)
{
    FSDP_TRY(compute_store(c, to, from, bytes));
    return c->device->sync(c->device->self, c->stream);
}

int compute_store(struct compute *c, void *to, const void *from, uint64_t bytes)
{
    const int status =
        c->device->copy(c->device->self, c->stream, to, from, bytes);

    return status == FSDP_OK ? FSDP_OK
                             : batch_fail(c->error, status, "workload",
                                          "a buffer was not copied: %s",
                                          fsdp_status_text(status));
}

int compute_copy(struct compute *c, uint64_t n, const float *x, float *y)
{
    return compute_store(c, y, x, n * sizeof(*y));
}

int compute_lent_back(struct compute *c)
{
    for (uint32_t i = 0; i < c->n_wide; i++) {
        struct compute_wide *w = &c->wide[i];

        if (w->narrow) {
            FSDP_TRY(compute_cast(c, w->n, FSDP_DTYPE_F32, w->wide, w->dtype,
                                  w->narrow));
            w->narrow = NULL;
        }
    }
    return FSDP_OK;
}

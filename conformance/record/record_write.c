/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_write.c - writes what one rank showed: rank-R.json and
 * rank-R.safetensors.
 */
#include "record/record_internal.h"

#include "checkpoint/safetensors.h"

#include <fsdp/arith/cast.h>
#include <stdlib.h>

static const char where[] = RECORD_WRITE_WHERE;

static bool lacks_array(const struct record_rank *r)
{
    const struct record_memory *const m = &r->memory;

    return (r->n_losses != 0 && !r->loss) ||
           (r->n_other_losses != 0 && !r->other_loss) ||
           (r->n_sequences != 0 && !r->sequence) ||
           (r->n_answers != 0 && !r->answer) ||
           (r->flights.n != 0 && !r->flights.flight) ||
           (r->n_tensors != 0 && !r->tensor) ||
           (r->n_steps != 0 && (!r->step_sequence || !m->after_step ||
                                !m->allocations || !m->launches)) ||
           (m->n_moments != 0 && !m->moment);
}

/* NULL, or what is wrong with arrays of r. */
static const char *check_rank(const struct record_rank *r)
{
    /* Before anything was communicated there is the empty sequence alone. */
    const uint32_t n_sequences = r->n_sequences != 0 ? r->n_sequences : 1;

    if (lacks_array(r)) {
        return "an array that has elements is NULL";
    }
    if (r->shard_sequence >= n_sequences || r->end_sequence >= n_sequences) {
        return "shard_sequence or end_sequence is no sequence";
    }
    for (uint32_t i = 0; i < r->n_steps; i++) {
        if (r->step_sequence[i] >= n_sequences) {
            return "a step_sequence is no sequence";
        }
    }
    for (uint32_t s = 0; s < r->n_sequences; s++) {
        if (r->sequence[s].n != 0 && !r->sequence[s].c) {
            return "a sequence that has collectives is NULL";
        }
    }
    for (uint32_t i = 0; i < r->n_tensors; i++) {
        if (!record_stage_name(r->tensor[i].stage) ||
            r->tensor[i].dtype > FSDP_DTYPE_U8 ||
            (r->tensor[i].n != 0 && !r->tensor[i].data)) {
            return "a tensor of no stage or dtype, or without data";
        }
    }
    return NULL;
}

static const char *const dtype_name[] = {
    [FSDP_DTYPE_NONE] = "F32",  [FSDP_DTYPE_F32] = "F32",
    [FSDP_DTYPE_BF16] = "BF16", [FSDP_DTYPE_F16] = "F16",
    [FSDP_DTYPE_I32] = "I32",   [FSDP_DTYPE_I64] = "I64",
    [FSDP_DTYPE_U8] = "U8"};

/* What was seen in 16 bits, or of integers, so again: every value fits. */
static void *narrowed(const struct record_tensor *t)
{
    uint16_t *const to = malloc(t->n * sizeof(*to) + 1);

    for (uint64_t i = 0; to && i < t->n; i++) {
        if (fsdp_is_float(t->dtype)) {
            fsdp_store(t->dtype, to, i, t->data[i]);
        } else if (t->dtype == FSDP_DTYPE_U8) {
            ((uint8_t *)to)[i] = (uint8_t)t->data[i];
        } else {
            to[i] = (uint16_t)t->data[i];
        }
    }
    return to;
}

/* How a tensor is written; false: out of memory. Where it is not float32,
 * *own is what has to be freed. */
static bool describe(const struct record_tensor *t, const char *name,
                     void **own, struct safetensors_tensor *out)
{
    const bool is_wide =
        t->dtype == FSDP_DTYPE_NONE || t->dtype == FSDP_DTYPE_F32;

    *out = (struct safetensors_tensor){.name = name,
                                       .dtype = "F32",
                                       .n_dims = 1,
                                       .shape = {t->n},
                                       .data = t->data,
                                       .bytes = t->n * sizeof(float)};
    if (!is_wide) {
        *own = narrowed(t);
        out->dtype = dtype_name[t->dtype];
        out->shape[0] = t->n / record_digits(t->dtype);
        out->data = *own;
        out->bytes = out->shape[0] * fsdp_dtype_bytes(t->dtype);
    }
    return is_wide || *own;
}

static int write_tensors(const char *directory, uint32_t rank,
                         const struct record_rank *r, struct fsdp_error *error)
{
    static const struct safetensors_meta meta = {"record-version", "1"};
    const size_t n = r->n_tensors;
    char path[RECORD_PATH_BYTES];
    char why[200] = "";
    char(*name)[RECORD_TENSOR_NAME_BYTES];
    struct safetensors_tensor *t;
    void **own;
    bool good = true;
    int status;

    FSDP_TRY(record_rank_path(path, directory, rank, ".safetensors", error));
    name = calloc(n + 1, sizeof(*name));
    t = calloc(n + 1, sizeof(*t));
    own = calloc(n + 1, sizeof(*own));
    for (size_t i = 0; name && t && own && i < n; i++) {
        record_tensor_name(&r->tensor[i], name[i]);
        good = good && describe(&r->tensor[i], name[i], &own[i], &t[i]);
    }
    if (!name || !t || !own || !good) {
        status = record_fail(error, FSDP_ERR_NOMEM, where,
                             "%.150s: out of memory", path);
    } else {
        status =
            safetensors_write(path, t, n, &meta, 1, false, why, sizeof(why));
        if (status != FSDP_OK) {
            (void)record_fail(error, status, where, "%s", why);
        }
    }
    for (size_t i = 0; own && i < n; i++) {
        free(own[i]);
    }
    free(own);
    free(name);
    free(t);
    return status;
}

int record_write_rank(const char *directory, uint32_t rank,
                      const struct record_rank *r, struct fsdp_error *error)
{
    const char *const wrong = check_rank(r);
    char path[RECORD_PATH_BYTES];

    if (wrong) {
        return record_fail(error, FSDP_ERR_INVALID, where, "rank %u: %s", rank,
                           wrong);
    }
    FSDP_TRY(record_make_directory(directory, error));
    FSDP_TRY(write_tensors(directory, rank, r, error));
    FSDP_TRY(record_rank_path(path, directory, rank, ".json", error));
    return record_write_rank_text(path, rank, r, error);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buffer_requirements.c - buffers, which a model keeps besides its parameters:
 * whole on every rank, in their dtypes, and the model's own from shard to
 * destroy.
 */
#include "requirements/buffer_moments.h"
#include "requirements/families.h"

#include "judge/compare/compare_checks.h"

#include <fsdp/arith/cast.h>
#include <stdlib.h>

static bool shows_any(const struct expect *e)
{
    struct buffer_moment m;

    return buffer_any(e) && buffer_moment_at(e, 0, &m);
}

/* ---- buffer.whole, buffer.dtype ----------------------------------------- */

static bool whole_at(const struct expect *e, const struct record_rank *rank,
                     uint32_t k, const struct buffer_moment *m,
                     struct finding *f)
{
    for (uint32_t b = 0; b < e->model->n_buffers; b++) {
        const struct record_tensor *t = buffer_tensor_at(rank, m, b);
        const uint64_t numel = e->model->buffer_numel[b];
        const char *name = e->model->buffer_name[b];

        if (numel > 0 && !t) {
            return finding_note(f, buffer_finding(m, k),
                                "buffer %.60s is not lent, or not dense in one "
                                "dimension",
                                name);
        }
        if (numel > 0 && t->n != numel * record_digits(t->dtype)) {
            return finding_note(
                f, buffer_finding(m, k),
                "buffer %.60s has %llu elements, %llu were expected", name,
                (unsigned long long)(t->n / (record_digits(t->dtype)
                                                 ? record_digits(t->dtype)
                                                 : 1)),
                (unsigned long long)numel);
        }
    }
    return true;
}

static bool dtype_at(const struct expect *e, const struct record_rank *rank,
                     uint32_t k, const struct buffer_moment *m,
                     struct finding *f)
{
    for (uint32_t b = 0; b < e->model->n_buffers; b++) {
        const struct record_tensor *t = buffer_tensor_at(rank, m, b);
        const uint32_t want = expect_buffer_dtype(e, b);
        const uint32_t got = t && t->dtype == FSDP_DTYPE_NONE ? FSDP_DTYPE_F32
                             : t                              ? t->dtype
                                                              : want;

        if (got != want) {
            return finding_note(
                f, buffer_finding(m, k), "buffer %.60s is %s, %s was expected",
                e->model->buffer_name[b], record_dtype_name(got),
                record_dtype_name(want));
        }
    }
    return true;
}

static bool each_moment(const struct expect *e, const struct record_rank *rank,
                        uint32_t k, struct finding *f,
                        bool (*holds)(const struct expect *e,
                                      const struct record_rank *rank,
                                      uint32_t k, const struct buffer_moment *m,
                                      struct finding *f))
{
    struct buffer_moment m;

    for (uint32_t i = 0; buffer_moment_at(e, i, &m); i++) {
        if (!holds(e, rank, k, &m, f)) {
            return false;
        }
    }
    return true;
}

static bool whole_of_rank(const struct expect *e,
                          const struct record_rank *rank, uint32_t k,
                          struct finding *f)
{
    return each_moment(e, rank, k, f, whole_at);
}

static bool dtype_of_rank(const struct expect *e,
                          const struct record_rank *rank, uint32_t k,
                          struct finding *f)
{
    return each_moment(e, rank, k, f, dtype_at);
}

/* The last tensor that was recorded of a stage; NULL: none. */
static struct record_tensor *last_of(struct record_rank *rank, uint32_t stage)
{
    struct record_tensor *last = NULL;

    for (uint32_t i = 0; rank->tensor && i < rank->n_tensors; i++) {
        struct record_tensor *t = &rank->tensor[i];

        last = t->stage == stage && t->n > 0 && t->data ? t : last;
    }
    return last;
}

static bool whole_spoil(const struct expect *e, struct record_rank *rank)
{
    struct record_tensor *t = last_of(rank, RECORD_BUFFER);

    (void)e;
    if (t) {
        t->n--;
    }
    return t != NULL;
}

static bool dtype_spoil(const struct expect *e, struct record_rank *rank)
{
    struct record_tensor *t = last_of(rank, RECORD_BUFFER);

    (void)e;
    if (t) {
        t->dtype =
            t->dtype == FSDP_DTYPE_F32 ? FSDP_DTYPE_BF16 : FSDP_DTYPE_F32;
    }
    return t != NULL;
}

/* ---- buffer.initial ----------------------------------------------------- */

/* Writes one element of a dtype in the form in which records have it. */
static void put_digits(uint32_t dtype, const void *from, uint64_t i, float *to)
{
    const uint32_t digits = record_digits(dtype);

    if (fsdp_is_float(dtype)) {
        to[i] = fsdp_load(dtype, from, i);
        return;
    }
    for (uint32_t k = 0; k < digits; k++) {
        to[i * digits + k] =
            dtype == FSDP_DTYPE_U8
                ? (float)((const uint8_t *)from)[i]
                : (float)((const uint16_t *)from)[i * digits + k];
    }
}

static bool initial_of(const struct expect *e, const struct record_rank *rank,
                       uint32_t k, uint32_t b, struct finding *f)
{
    const struct fsdp_model *m = e->model;
    const struct buffer_moment first = {RECORD_BUFFER, 0, 0};
    const uint32_t stored = m->buffer_dtype[b];
    const uint32_t rests = expect_buffer_dtype(e, b);
    const uint64_t n = m->buffer_numel[b];
    void *value = malloc(n * fsdp_dtype_bytes(stored) + 1);
    float *want = calloc(n * record_digits(stored) + 1, sizeof(*want));
    bool well = false;

    if (!value || !want ||
        m->initial_buffer(m->context, b, 0, n, value) != FSDP_OK) {
        (void)finding_text(f, buffer_finding(&first, k),
                           "the judge cannot make the initial values");
    } else {
        for (uint64_t i = 0; i < n; i++) {
            put_digits(stored, value, i, want);
            if (fsdp_is_float(stored)) {
                want[i] = fsdp_round(rests, want[i]);
            }
        }
        well =
            buffer_compare(e, rank, k, &first, b, want,
                           "its initial value, rounded once to its dtype, was "
                           "expected",
                           f);
    }
    free(value);
    free(want);
    return well;
}

static bool initial_of_rank(const struct expect *e,
                            const struct record_rank *rank, uint32_t k,
                            struct finding *f)
{
    for (uint32_t b = 0; b < e->model->n_buffers; b++) {
        if (!initial_of(e, rank, k, b, f)) {
            return false;
        }
    }
    return true;
}

static bool initial_spoil(const struct expect *e, struct record_rank *rank)
{
    (void)e;
    for (uint32_t i = 0; rank->tensor && i < rank->n_tensors; i++) {
        struct record_tensor *t = &rank->tensor[i];

        if (t->stage == RECORD_BUFFER && t->step == 0 && t->n > 0) {
            return buffer_flip(t);
        }
    }
    return false;
}

/* ---- buffer.writes-stay ------------------------------------------------- */

static bool shows_writes(const struct expect *e)
{
    return buffer_any(e) && buffer_steps(e) > 0 && buffer_shows_initial(e);
}

/* Whether there are passes between steps which the record does not show. */
static bool has_other_passes(const struct expect *e)
{
    return e->c->scenario == CASE_EVAL || e->c->scenario == CASE_CANCEL;
}

/* The moment before m, at which buffers must have been as at m. Returns the
 * stage of `before`, or N_STAGES if passes that are not recorded lie in
 * between. */
static uint32_t follows(const struct expect *e, const struct buffer_moment *m,
                        struct buffer_moment *before)
{
    *before = (struct buffer_moment){RECORD_N_STAGES, 0, 0};
    if (m->stage == RECORD_BUFFER && m->step > buffer_steps(e)) {
        return before->stage; /* after steps whose passes are not recorded */
    }
    if (m->stage == RECORD_BUFFER && m->step > 0) {
        *before = (struct buffer_moment){RECORD_BUFFER_LEFT, m->step - 1,
                                         e->c->microbatches - 1};
    } else if (m->stage == RECORD_BUFFER_SEEN && m->microbatch > 0) {
        *before = (struct buffer_moment){RECORD_BUFFER_LEFT, m->step,
                                         m->microbatch - 1};
    } else if (m->stage == RECORD_BUFFER_SEEN && case_resumes(e->c) &&
               m->step == e->c->steps / 2) {
        *before = (struct buffer_moment){RECORD_BUFFER_LOADED, m->step, 0};
    } else if (m->stage == RECORD_BUFFER_SEEN && !has_other_passes(e)) {
        *before = (struct buffer_moment){RECORD_BUFFER, m->step, 0};
    }
    return before->stage;
}

static bool stays_at(const struct expect *e, const struct record_rank *rank,
                     uint32_t k, const struct buffer_moment *m,
                     struct finding *f)
{
    struct buffer_moment before;

    if (follows(e, m, &before) == RECORD_N_STAGES) {
        return true;
    }
    for (uint32_t b = 0; b < e->model->n_buffers; b++) {
        const struct record_tensor *left = buffer_tensor_at(rank, &before, b);

        if (e->model->buffer_numel[b] > 0 &&
            (!left || !buffer_compare(e, rank, k, m, b, left->data,
                                      "what was left there was expected", f))) {
            return left ? false
                        : finding_note(f, buffer_finding(&before, k),
                                       "buffer %.60s is not recorded",
                                       e->model->buffer_name[b]);
        }
    }
    return true;
}

static bool stays_of_rank(const struct expect *e,
                          const struct record_rank *rank, uint32_t k,
                          struct finding *f)
{
    return each_moment(e, rank, k, f, stays_at);
}

static bool stays_spoil(const struct expect *e, struct record_rank *rank)
{
    (void)e;
    return buffer_flip(last_of(rank, RECORD_BUFFER_LEFT));
}

/* ---- buffer.as-unsharded ------------------------------------------------ */

/* Where more happens to buffers than the record shows of each step, they are
 * compared with those of the same rank in the unsharded run. That must have
 * made the same passes: it cancels none but in a script. */
static bool compares_unsharded(const struct expect *e)
{
    return shows_any(e) &&
           (case_is_script(e->c) ||
            (e->c->scenario == CASE_EVAL && buffer_steps(e) > 0));
}

/* Whether buffers of this dtype may differ from the unsharded run's: an engine
 * with its own arithmetic has other floating-point values, but the same integer
 * counts. */
static bool has_own_values(const struct expect *e, uint32_t dtype)
{
    return e->profile == EXPECT_OWN && !workload_is_exact(e->c->data) &&
           fsdp_is_float(dtype);
}

static bool unsharded_at(const struct expect *e, const struct record_rank *rank,
                         uint32_t k, const struct buffer_moment *m,
                         struct finding *f)
{
    const struct record_rank *other =
        e->baseline ? compare_rank(e->baseline, k) : NULL;

    for (uint32_t b = 0; b < e->model->n_buffers; b++) {
        const struct record_tensor *want =
            other ? buffer_tensor_at(other, m, b) : NULL;

        if (e->model->buffer_numel[b] == 0 ||
            has_own_values(e, expect_buffer_dtype(e, b))) {
            continue;
        }
        if (!want) {
            return finding_missing(f, buffer_finding(m, k),
                                   "the unsharded run does not show buffers");
        }
        if (!buffer_compare(
                e, rank, k, m, b, want->data,
                "that of the same rank in the unsharded run was expected", f)) {
            return false;
        }
    }
    return true;
}

static bool unsharded_of_rank(const struct expect *e,
                              const struct record_rank *rank, uint32_t k,
                              struct finding *f)
{
    return each_moment(e, rank, k, f, unsharded_at);
}

static bool unsharded_spoil(const struct expect *e, struct record_rank *rank)
{
    struct record_tensor *last = NULL;

    for (uint32_t i = 0; rank->tensor && i < rank->n_tensors; i++) {
        struct record_tensor *t = &rank->tensor[i];

        if (t->stage == RECORD_BUFFER && t->n > 0 && t->data &&
            t->parameter < e->model->n_buffers &&
            !has_own_values(e, expect_buffer_dtype(e, t->parameter))) {
            last = t;
        }
    }
    return e->baseline && buffer_flip(last);
}

/* ---- memory.buffers ----------------------------------------------------- */

static bool rests(const struct expect *e)
{
    return buffer_any(e) && compare_case_shards(e);
}

static bool bytes_of_rank(const struct expect *e,
                          const struct record_rank *rank, uint32_t k,
                          struct finding *f)
{
    const struct record_memory *m = &rank->memory;
    const uint64_t want = e->rest.live[FSDP_BUFFER];
    const struct finding at = finding_at("buffer", -1, -1, k);

    if (m->after_shard.live[FSDP_BUFFER] != want) {
        return finding_bytes(f, at, m->after_shard.live[FSDP_BUFFER], want,
                             "live as buffers after sharding");
    }
    for (uint32_t t = 0; m->after_step && t < rank->n_steps; t++) {
        /* Actions of a script may come before its first life begins. */
        const uint64_t then =
            t < e->n_events ? e->event[t].rest[FSDP_BUFFER] : want;

        if (m->after_step[t].live[FSDP_BUFFER] != then) {
            return finding_bytes(f, finding_at("buffer", t, -1, k),
                                 m->after_step[t].live[FSDP_BUFFER], then,
                                 "live as buffers after this step");
        }
    }
    return m->peak[FSDP_BUFFER] == want ||
           finding_bytes(f, at, m->peak[FSDP_BUFFER], want,
                         "live as buffers at once");
}

/* ---- error.unknown-buffer ----------------------------------------------- */

static bool asks_wrongly(const struct expect *e)
{
    return buffer_any(e) && e->c->scenario == CASE_MISUSE;
}
const struct requirement buffer_requirements[] = {
    {.since = "1.1", .must = 1, .claim = "buffers", .check = &check_each_rank},
    {.id = "buffer.whole",
     .text = "Each buffer is lent whole on every rank, dense and in one "
             "dimension, in passes and at rest.",
     .level = LEVEL_LAYOUT,
     .needs = "run.survives run.ranks-present",
     .applies = shows_any,
     .rank = {whole_of_rank, whole_spoil}},
    {.id = "buffer.dtype",
     .text = "A buffer of floating point is in the buffer dtype of its unit or "
             "the options, one of integers or of which nothing is said in its "
             "own, in passes and at rest.",
     .level = LEVEL_LAYOUT,
     .needs = "buffer.whole",
     .applies = shows_any,
     .rank = {dtype_of_rank, dtype_spoil}},
    {.id = "buffer.initial",
     .text = "After sharding every rank has the initial value of each buffer, "
             "rounded once to the buffer dtype.",
     .level = LEVEL_LAYOUT,
     .needs = "buffer.dtype",
     .applies = buffer_shows_initial,
     .rank = {initial_of_rank, initial_spoil}},
    {.id = "buffer.writes-stay",
     .text = "What the model leaves in a buffer is what it finds there next, "
             "on each rank its own, and nothing else ever writes it but a "
             "load.",
     .level = LEVEL_GATHER,
     .needs = "buffer.dtype",
     .applies = shows_writes,
     .rank = {stays_of_rank, stays_spoil}},
    {.id = "buffer.as-unsharded",
     .text = "Behind evaluations, and cancelled passes and all else that a "
             "script does, buffers are those of the same rank in the unsharded "
             "run; in an arithmetic of its own those of integers.",
     .level = LEVEL_GATHER,
     .needs = "buffer.dtype",
     .beside_training = true,
     .applies = compares_unsharded,
     .rank = {unsharded_of_rank, unsharded_spoil}},
    {.id = "memory.buffers",
     .text = "From sharding to destroy exactly the bytes of all buffers, whole "
             "and in their dtypes, are live as such.",
     .level = LEVEL_MEMORY,
     .needs = "run.shows-every-step",
     .applies = rests,
     .rank = {bytes_of_rank,
              .raises = COMPARE_OF_RANK(memory.after_shard.live[FSDP_BUFFER])}},
    {.id = "error.unknown-buffer",
     .text = "A buffer that the model does not have is refused as INVALID, at "
             "rest and in a pass, and the message has its number.",
     .level = LEVEL_ERRORS,
     .needs = "run.survives run.ranks-present error.says-why",
     .applies = asks_wrongly,
     .check = &check_answers_named,
     .answers = {{"unknown-buffer", FSDP_ERR_INVALID}}},
    {0},
};

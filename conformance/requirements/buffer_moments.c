/* SPDX-License-Identifier: Apache-2.0 */
/* buffer_moments.c - see the header */
#include "requirements/buffer_moments.h"

#include "judge/compare/compare_checks.h"

#include <stdio.h>
#include <string.h>

bool buffer_any(const struct expect *e)
{
    return e->model->n_buffers > 0;
}

/* ---- Where buffers are recorded ----------------------------------------- */

bool buffer_shows_initial(const struct expect *e)
{
    const bool mistakes =
        e->c->recorded_steps > 0 &&
        (e->c->scenario == CASE_CANCEL || e->c->scenario == CASE_MISUSE);

    return buffer_any(e) && (mistakes || compare_case_initial(e));
}

bool buffer_shows_load(const struct expect *e)
{
    return buffer_any(e) && case_resumes(e->c) &&
           e->c->recorded_steps > e->c->steps / 2;
}

/* Scripts record no passes. */
uint32_t buffer_steps(const struct expect *e)
{
    return compare_case_trains(e) && !case_is_script(e->c)
               ? compare_recorded_steps(e)
               : 0;
}

/* The i-th look of a script. */
static bool look_at(const struct expect *e, uint32_t i, struct buffer_moment *m)
{
    for (uint32_t k = 0; k < e->n_events; k++) {
        if (e->event[k].action->verb == SCRIPT_LOOK && i-- == 0) {
            *m = (struct buffer_moment){RECORD_BUFFER, k, 0};
            return true;
        }
    }
    return false;
}

/* The moments behind the recorded steps: the end of the last step of all, and a
 * load. */
static bool past_steps(const struct expect *e, uint32_t i,
                       struct buffer_moment *m)
{
    const bool ends = buffer_steps(e) < e->c->steps;

    if (ends && i == 0) {
        *m = (struct buffer_moment){RECORD_BUFFER, e->c->steps, 0};
        return true;
    }
    *m = (struct buffer_moment){RECORD_BUFFER_LOADED, e->c->steps / 2, 0};
    return i == (ends ? 1 : 0) && buffer_shows_load(e);
}

/* Moment i at which buffers must be recorded; false: past the last. */
bool buffer_moment_at(const struct expect *e, uint32_t i,
                      struct buffer_moment *m)
{
    const uint32_t passes = 2 * e->c->microbatches;
    const uint32_t step = i > 0 ? (i - 1) / (passes + 1) : 0;
    const uint32_t at = i > 0 ? (i - 1) % (passes + 1) : 0;

    if (case_is_script(e->c)) {
        return look_at(e, i, m);
    }
    if (i == 0) {
        *m = (struct buffer_moment){RECORD_BUFFER, 0, 0};
        return buffer_shows_initial(e);
    }
    if (step < buffer_steps(e)) {
        *m = at == passes ? (struct buffer_moment){RECORD_BUFFER, step + 1, 0}
             : at % 2 == 0
                 ? (struct buffer_moment){RECORD_BUFFER_SEEN, step, at / 2}
                 : (struct buffer_moment){RECORD_BUFFER_LEFT, step, at / 2};
        return true;
    }
    return buffer_steps(e) > 0 &&
           past_steps(e, i - 1 - buffer_steps(e) * (passes + 1), m);
}

const struct record_tensor *buffer_tensor_at(const struct record_rank *rank,
                                             const struct buffer_moment *m,
                                             uint32_t b)
{
    return record_find(rank, m->stage, m->step, m->microbatch, b, 0);
}

struct finding buffer_finding(const struct buffer_moment *m, uint32_t k)
{
    return finding_at(record_stage_name(m->stage), m->step,
                      m->stage == RECORD_BUFFER_SEEN ||
                              m->stage == RECORD_BUFFER_LEFT
                          ? (int64_t)m->microbatch
                          : -1,
                      k);
}

/* ---- What is compared --------------------------------------------------- */

static uint32_t bits_of(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

static bool same_bits(const float *a, const float *b, uint64_t n, uint64_t *at)
{
    for (*at = 0; *at < n; (*at)++) {
        if (bits_of(a[*at]) != bits_of(b[*at])) {
            return false;
        }
    }
    return true;
}

/* Compares bits, so that a NaN may equal a NaN. */
bool buffer_compare(const struct expect *e, const struct record_rank *rank,
                    uint32_t k, const struct buffer_moment *m, uint32_t b,
                    const float *want, const char *words, struct finding *f)
{
    const struct record_tensor *got = buffer_tensor_at(rank, m, b);
    const char *name = e->model->buffer_name[b];
    const uint64_t n =
        e->model->buffer_numel[b] * record_digits(expect_buffer_dtype(e, b));
    struct finding at = buffer_finding(m, k);
    uint64_t i;

    if (!got || got->n != n) {
        return finding_note(f, at, "buffer %.60s is not recorded as a whole",
                            name);
    }
    if (same_bits(got->data, want, n, &i)) {
        return true;
    }
    at.element = (int64_t)i;
    (void)finding_bits(f, at, got->data[i], want[i], "");
    snprintf(f->note, sizeof(f->note), "buffer %.60s, %s", name, words);
    return false;
}

/* Turns a bit of the first element. */
bool buffer_flip(struct record_tensor *t)
{
    uint32_t bits;

    if (!t) {
        return false;
    }
    bits = bits_of(t->data[0]) ^ 1u << 16; /* 16 bit values have it, too */
    memcpy(t->data, &bits, sizeof(bits));
    return true;
}

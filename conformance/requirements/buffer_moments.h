/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buffer_moments.h - the moments at which a record shows a model's buffers, and
 * what it shows of a buffer at such a moment.
 */
#ifndef FSDP_CTS_BUFFER_MOMENTS_H
#define FSDP_CTS_BUFFER_MOMENTS_H

#include "judge/oracle/expect.h"
#include "record/record.h"

struct buffer_moment {
    uint32_t stage, step, microbatch;
};

/* Whether the model has any buffer. */
bool buffer_any(const struct expect *e);
/* Whether a record shows buffers as they are in the beginning; and behind a
 * load. */
bool buffer_shows_initial(const struct expect *e);
bool buffer_shows_load(const struct expect *e);
/* How many steps have the buffers of their passes recorded. */
uint32_t buffer_steps(const struct expect *e);
/* Moment i at which buffers must be recorded; false: past the last. */
bool buffer_moment_at(const struct expect *e, uint32_t i,
                      struct buffer_moment *m);

/* What the record has of buffer b at that moment; NULL: nothing. */
const struct record_tensor *buffer_tensor_at(const struct record_rank *rank,
                                             const struct buffer_moment *m,
                                             uint32_t b);
struct finding buffer_finding(const struct buffer_moment *m, uint32_t k);
/* Whether buffer b is `want` at that moment, in every bit; `words` say what was
 * expected. */
bool buffer_compare(const struct expect *e, const struct record_rank *rank,
                    uint32_t k, const struct buffer_moment *m, uint32_t b,
                    const float *want, const char *words, struct finding *f);

/* For spoils: changes a bit of the first element; false: t is NULL. */
bool buffer_flip(struct record_tensor *t);

#endif

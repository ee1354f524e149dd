/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exact16.c - see exact16.h.
 *
 * The bit budget, in units of 2^-8 for weights and outputs: weights begin as
 * 256 to 511 units and move by lr = 2^-3 times a gradient of at most 500 over
 * 16 samples, in multiples of 2^-7. Over the four steps of cases a weight stays
 * below 2^4, and an output, a sum of at most four, below 2^6, which is 14 bits;
 * a tie has 9 bits more, a sum 1536 = 3 * 2^9 in a microbatch where all else is
 * a multiple of 3. So a loss has at most 23 bits and what the other columns
 * add; workload_exact_test.c measures how many there are.
 */
#include "exact16.h"

#include <string.h>

enum {
    UNIT = 3,         /* a multiple of K = 3 */
    LARGE = 512,      /* units in the large terms of a pending sum */
    MOST_SUMS = 4,    /* ranks that have such sums, so that float16 has room */
    TIE_FIRST = 22,   /* ties are 12 k + 1 and 12 k - 1: both are 12 k */
    TIE_CHOICES = 19, /* k from 22 to 40: 263 to 481, of 9 bits */
};

/* Where in a step a sample lies. */
struct place {
    uint32_t microbatch, rank;
    uint64_t row; /* of the rank's batch */
};

static struct place place_of(const struct layers_model *m, uint64_t sample)
{
    const uint64_t in = sample % m->batch.microbatch_samples;

    return (struct place){(uint32_t)(sample / m->batch.microbatch_samples),
                          (uint32_t)(in / m->batch.samples),
                          in % m->batch.samples};
}

/* -1, 0 or 1. */
static float sign_at(const struct layers_model *m, uint32_t stream,
                     uint32_t step, uint64_t at, uint64_t width)
{
    float x;

    batch_integers(m->base.config.seed, stream, batch_index(step, at, width), 1,
                   1, &x);
    return x;
}

void exact16_weights(uint64_t seed, uint32_t p, uint64_t first, uint64_t n,
                     float *out)
{
    batch_integers(seed, p, first, n, 255, out);
    for (uint64_t i = 0; i < n; i++) {
        out[i] = (out[i] < 0.0f ? out[i] - 256.0f : out[i] + 256.0f) / 256.0f;
    }
}

/* In their first row different ranks use different inputs, as far as a layer
 * has that many; all microbatches of a rank use the same one. */
void exact16_inputs(const struct layers_model *m, uint32_t u, uint32_t step,
                    uint64_t first, uint64_t n, float *out)
{
    const uint32_t width = m->size.in[u];

    memset(out, 0, n * width * sizeof(*out));
    for (uint64_t r = 0; r < n; r++) {
        const struct place at = place_of(m, first + r);
        const uint64_t i = at.row == 0
                               ? (uint64_t)step * m->base.config.world + at.rank
                               : first + r;

        out[r * width + (i + u) % width] =
            at.row == 0 ? 1.0f
                        : sign_at(m, BATCH_INPUT + u, step, first + r, 1);
    }
}

static uint32_t fewest_inputs(const struct layers_model *m)
{
    uint32_t least = m->size.in[0];

    for (uint32_t u = 1; u < m->size.n; u++) {
        least = m->size.in[u] < least ? m->size.in[u] : least;
    }
    return least;
}

/* The tie of a sample: in the first row of the first microbatch, of ranks that
 * have an input of each layer to themselves; else 0. */
static float tie(const struct layers_model *m, uint32_t step, struct place at)
{
    const uint32_t k = TIE_FIRST + (5 * step + 3 * at.rank) % TIE_CHOICES;
    const float beside = (step + at.rank) % 2 == 0 ? 1.0f : -1.0f;
    const float sign = (step + at.rank) % 3 == 2 ? -1.0f : 1.0f;

    return at.row != 0 || at.microbatch != 0 || at.rank >= fewest_inputs(m)
               ? 0.0f
               : sign * (12.0f * (float)k + beside);
}

/* The terms of a pending sum, one for each microbatch: a small one, a large
 * one, and one that takes the large one away. */
static float sum(uint32_t step, struct place at)
{
    const float of_microbatch[] = {UNIT, UNIT * LARGE, -UNIT * LARGE};
    const float sign = at.rank % 2 == 0 ? 1.0f : -1.0f;

    if (at.row != 0 || at.rank >= MOST_SUMS || at.microbatch > 2) {
        return 0.0f;
    }
    return at.microbatch == 0 && step % 2 == 1
               ? -sign * UNIT
               : sign * of_microbatch[at.microbatch];
}

void exact16_coefficients(const struct layers_model *m, uint32_t step,
                          uint64_t first, uint64_t n, float *out)
{
    const uint32_t width = m->size.out[0];
    const bool sums = m->base.config.microbatches > 2;

    for (uint64_t r = 0; r < n; r++) {
        const struct place at = place_of(m, first + r);

        for (uint32_t j = 0; j < width; j++) {
            float *const c = &out[r * width + j];

            if (j == step % width) {
                *c = tie(m, step, at);
            } else if (sums && j == (step + 1) % width) {
                *c = sum(step, at);
            } else {
                *c = UNIT *
                     sign_at(m, BATCH_TARGET, step, (first + r) * width + j, 1);
            }
        }
    }
}

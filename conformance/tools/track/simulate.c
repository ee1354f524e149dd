/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simulate.c - made-up histories, and how often E-divisive is right about
 * them. Every run is judged when it comes in, as a pipeline would do it: a
 * history without a step counts as called if any of its runs was.
 */
#include "tools/track/simulate.h"
#include "tools/track/median.h"

#include <fsdp/status.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    SAMPLES_MOST = 64,
    EARLIEST = 15 /* a step comes at this run at the earliest */
};

const struct simulation simulation_defaults = {
    .series = 200,
    .runs = 50,
    .samples = 9,
    .noise = 0.03,
    .drift = 0.005,
    .step = 0.05,
    .within = 5,
    .seed = 2026,
};

/* In (0, 1]. */
static double uniform(uint64_t *state)
{
    return ((double)(draw_of(state) >> 11) + 1.0) * 0x1p-53;
}

/* Box and Muller's. */
static double normal(uint64_t *state)
{
    double radius = sqrt(-2.0 * log(uniform(state)));

    return radius * cos(6.283185307179586 * uniform(state));
}

void simulate_history(const struct simulation *s, uint32_t index, uint32_t at,
                      double *x)
{
    uint64_t state = s->seed * 1000003 + index;
    double kept = s->persistence * s->persistence;
    double own = s->drift * (kept < 1.0 ? sqrt(1.0 - kept) : 1.0);
    double offset = 0.0;

    for (uint32_t run = 0; run < s->runs; run++) {
        double level = run >= at ? 1000.0 * (1.0 - s->step) : 1000.0;
        double sample[SAMPLES_MOST];

        offset = s->persistence * offset + own * normal(&state);
        for (uint32_t i = 0; i < s->samples; i++) {
            sample[i] =
                level * (1.0 + offset) * (1.0 + s->noise * normal(&state));
        }
        x[run] = median_of(sample, s->samples);
    }
}

static int with_step(const struct simulation *s,
                     const struct edivisive_options *o, uint32_t index,
                     double *x, struct simulation_result *out)
{
    uint64_t state = s->seed + index;
    uint32_t room = s->runs - EARLIEST - s->within;
    uint32_t at = EARLIEST + (uint32_t)(draw_of(&state) % room);
    struct edivisive_change *change = NULL;
    uint32_t n = 0;

    simulate_history(s, index, at, x);
    /* Runs that come later than `within` runs after the step are ignored. */
    FSDP_TRY(edivisive_changes(x, at + s->within, o, &change, &n));
    if (n > 0 && change[0].found < at) {
        out->false_before++;
    } else if (n > 0 && change[0].after < change[0].before) {
        uint32_t delay = change[0].found - at + 1;

        out->found++;
        out->exactly += change[0].begin == at ? 1 : 0;
        out->delay[delay < 63 ? delay : 63]++;
    }
    free(change);
    return FSDP_OK;
}

static int without_step(const struct simulation *s,
                        const struct edivisive_options *o, uint32_t index,
                        double *x, struct simulation_result *out)
{
    struct edivisive_change *change = NULL;
    uint32_t n = 0;

    simulate_history(s, s->series + index, s->runs, x);
    FSDP_TRY(edivisive_changes(x, s->runs, o, &change, &n));
    out->called += n > 0 ? 1 : 0;
    free(change);
    return FSDP_OK;
}

int simulate_step_at(const struct simulation *s,
                     const struct edivisive_options *o, uint32_t at,
                     struct simulation_call *out)
{
    const uint32_t first = at > 0 ? at - 1 : s->runs;
    double *x = calloc(s->runs + 1u, sizeof(*x));
    uint32_t *told = calloc(s->runs + 1u, sizeof(*told));
    int status = x && told ? FSDP_OK : FSDP_ERR_NOMEM;
    uint32_t sum = 0;

    *out = (struct simulation_call){.found = 0};
    for (uint32_t i = 0; i < s->series && status == FSDP_OK; i++) {
        struct edivisive_change *change = NULL;
        uint32_t n = 0;
        uint32_t k = 0;

        simulate_history(s, i, first, x);
        status = edivisive_changes(x, s->runs, o, &change, &n);
        out->before += at > 0 && n > 0 && change[0].found < first;
        while (at > 0 && k < n && change[k].found < first) {
            k++;
        }
        if (status == FSDP_OK && k < n) {
            out->found++;
            told[change[k].found]++;
        }
        free(change);
    }
    for (uint32_t run = 0; run < s->runs && status == FSDP_OK; run++) {
        sum += told[run];
        out->half = out->half == 0 && sum > 0 && 2 * sum >= out->found
                        ? run + 1
                        : out->half;
        out->latest = told[run] > 0 ? run + 1 : out->latest;
    }
    free(told);
    free(x);
    return status;
}

int simulate(const struct simulation *s, const struct edivisive_options *o,
             struct simulation_result *out)
{
    double *x = calloc(s->runs + 1u, sizeof(*x));
    int status = x ? FSDP_OK : FSDP_ERR_NOMEM;

    memset(out, 0, sizeof(*out));
    if (s->samples > SAMPLES_MOST || s->runs <= EARLIEST + s->within) {
        status = FSDP_ERR_INVALID;
    }
    for (uint32_t i = 0; i < s->series && status == FSDP_OK; i++) {
        status = with_step(s, o, i, x, out);
        if (status == FSDP_OK) {
            status = without_step(s, o, i, x, out);
        }
    }
    free(x);
    return status;
}

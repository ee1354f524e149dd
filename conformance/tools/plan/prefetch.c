/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prefetch.c - the closed form, and the simulation that it is compared with.
 */
#include "tools/plan/prefetch.h"

#include "tools/plan/plan_equal.h"
#include "tools/plan/plan_time.h"

#include <math.h>
#include <stdlib.h>

double prefetch_hidden_from(const struct prefetch *p)
{
    return p->f > p->b ? p->alpha / (p->f - p->b) : (double)INFINITY;
}

double prefetch_best(const struct prefetch *p)
{
    const double latency = sqrt(p->alpha * p->elements / p->f);

    return fmin(prefetch_hidden_from(p), latency);
}

double prefetch_seconds(const struct prefetch *p, double m)
{
    return m < prefetch_hidden_from(p)
               ? p->b * p->elements + p->alpha * p->elements / m + p->f * m
               : p->f * p->elements + p->alpha + p->b * m;
}

/* The forward alone takes time: 32 elements stand for a unit. */
static int simulate(const struct prefetch *p, uint32_t units,
                    const struct plan_ask *ask, double *out,
                    struct fsdp_error *error)
{
    const double m = p->elements / units;
    struct schedule s;
    struct plan_time t = {.span = NULL};
    double *duration = NULL;
    uint32_t gathers = 0;
    int status = schedule_make(ask, &s, error);

    if (status == FSDP_OK) {
        duration = calloc((size_t)s.n + 1, sizeof(*duration));
        status = duration ? FSDP_OK : FSDP_ERR_NOMEM;
    }
    for (uint32_t i = 0; status == FSDP_OK && i < s.n; i++) {
        const struct schedule_task *const k = &s.task[i];

        if (k->stream == SCHEDULE_COMPUTE && k->point == FSDP_PRE_FORWARD) {
            duration[i] = k->unit != FSDP_NO_UNIT ? p->f * m : 0.0;
        } else if (k->stream == SCHEDULE_SHARD && gathers < units) {
            duration[i] = p->alpha + p->b * m; /* the forward's come first */
            gathers++;
        }
    }
    if (status == FSDP_OK) {
        status = plan_simulate(&s, units, duration, 0.0, &t);
    }
    *out = t.seconds;
    plan_time_release(&t);
    free(duration);
    schedule_release(&s);
    return status;
}

int prefetch_simulated(const struct prefetch *p, uint32_t units, double *out,
                       struct fsdp_error *error)
{
    struct plan_model m;
    struct plan_ask ask;
    int status = plan_equal_model((uint64_t)units * 32, units, &m, error);

    *out = NAN;
    if (status == FSDP_OK) {
        ask = plan_ask_for(&m, 2, CASE_FULL_SHARD, CASE_F32);
        ask.c.prefetch_forward = 1;
        status = simulate(p, units, &ask, out, error);
    }
    plan_model_release(&m);
    return status;
}

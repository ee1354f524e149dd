/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prefetch.h - when prefetch pays off, and which size of units is best:
 * exercise 16.5.3 of the textbook, in closed form and by simulation.
 *
 * A unit of m parameters takes f m seconds to compute and alpha + b m to
 * gather; while it computes, the next one is gathered. The gather is hidden if
 * and only if alpha + b m <= f m. A forward of M parameters then takes
 *
 *     b M + alpha M / m + f m    if gathers take longer
 *     f M + alpha + b m          if compute does: m >= m* = alpha / (f - b)
 *
 * and the first gather is always waited for.
 */
#ifndef FSDP_CTS_PREFETCH_H
#define FSDP_CTS_PREFETCH_H

#include <fsdp/status.h>
#include <stdint.h>

struct prefetch {
    double elements;    /* M */
    double alpha, f, b; /* seconds; seconds a parameter */
};

/* m*; infinite if no size hides the gathers. */
double prefetch_hidden_from(const struct prefetch *p);
/* The m for which the forward is shortest. */
double prefetch_best(const struct prefetch *p);
/* Seconds of the forward, with units of m. */
double prefetch_seconds(const struct prefetch *p, double m);
/* The same by the schedule and the simulation of `plan`, with `units` equal
 * units. As plan_time_make. */
int prefetch_simulated(const struct prefetch *p, uint32_t units, double *out,
                       struct fsdp_error *error);

#endif

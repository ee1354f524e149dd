/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare_flights.h - finds the points of the model's sequence that belong to
 * positions of a step (record_flights.h). For cases of scenario TRAIN.
 */
#ifndef FSDP_CTS_COMPARE_FLIGHTS_H
#define FSDP_CTS_COMPARE_FLIGHTS_H

#include "judge/compare/compare.h"

/* Whether the case trains and does nothing else, so that a position is a point
 * of the training sequence. */
bool flights_applies(const struct expect *e);

/* Calls `check` for each collective of the last step on every rank; `at` has
 * its place. */
bool flights_each(const struct expect *e, const struct record *r,
                  bool (*check)(const struct expect *e,
                                const struct record_flights *flights,
                                uint32_t i, struct finding at,
                                struct finding *f),
                  struct finding *f);

/* Whether flight i is a reduction behind which something is computed while it
 * may run. *meanwhile is the next point behind which a module with parameters
 * computes a backward in the same microbatch. False as well if by then so many
 * further reductions were given out that this one must have been waited for. */
bool flights_reduce(const struct expect *e,
                    const struct record_flights *flights, uint32_t i,
                    uint32_t *meanwhile);

/* The way from where an all-gather is given out to the point that opens the
 * window of its unit, in the same pass. Both may be the same position. */
struct flights_way {
    uint32_t issued, opens; /* positions */
    bool same_phase;        /* all points between them are of one direction */
    uint32_t edge; /* the last forward point before a backward window */
};
/* Fills *out. False: the collective is of another kind, or its pass opens no
 * window of the unit any more. */
bool flights_way(const struct expect *e, const struct record_flight *x,
                 struct flights_way *out);

/* For spoiling: the flights of the last rank; NULL: it has none. */
struct record_flights *flights_to_spoil(struct record *r);

/* What both requirements of early gathers ask; `backward` chooses which. */
bool flights_gathers_ahead(const struct expect *e, const struct record *r,
                           bool backward, struct finding *f);
bool flights_spoil_gather(const struct expect *e, struct record *r,
                          bool backward);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare_flights.h - positions of a step that trains (record_flights.h) as
 * points of the model's sequence. For cases of scenario TRAIN.
 */
#ifndef FSDP_CTS_COMPARE_FLIGHTS_H
#define FSDP_CTS_COMPARE_FLIGHTS_H

#include "judge/compare/compare.h"

/* Trains and nothing else, so that positions are what is said here. */
bool flights_applies(const struct expect *e);

/* Calls `check` for each collective of the last step on every rank; `at` is
 * that place. */
bool flights_each(const struct expect *e, const struct record *r,
                  bool (*check)(const struct expect *e,
                                const struct record_flights *flights,
                                uint32_t i, struct finding at,
                                struct finding *f),
                  struct finding *f);

/* A reduction, and the next point after which a module with parameters
 * computes a backward in the same microbatch, unless by then more reductions
 * were given out than may be in flight. */
bool flights_reduce(const struct expect *e,
                    const struct record_flights *flights, uint32_t i,
                    uint32_t *meanwhile);

/* Where an all-gather was given out, and the point that opens the window of
 * its unit, in the same pass; both may be it. */
struct flights_way {
    uint32_t issued, opens; /* positions */
    bool same_phase;        /* no point between them has the other direction */
    uint32_t edge; /* the last forward point before a backward window */
};
/* False: a collective of another kind, or no window follows in its pass. */
bool flights_way(const struct expect *e, const struct record_flight *x,
                 struct flights_way *out);

/* For spoiling: the flights of the last rank, or NULL. */
struct record_flights *flights_to_spoil(struct record *r);

/* Both requirements of gathers ahead. */
bool flights_gathers_ahead(const struct expect *e, const struct record *r,
                           bool backward, struct finding *f);
bool flights_spoil_gather(const struct expect *e, struct record *r,
                          bool backward);

#endif

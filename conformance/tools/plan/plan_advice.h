/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_advice.h - the strategies side by side, from the least sharding to the
 * most: which of them fit in a memory, which is the first that does, and which
 * term of the peak is the largest.
 */
#ifndef FSDP_CTS_PLAN_ADVICE_H
#define FSDP_CTS_PLAN_ADVICE_H

#include "tools/plan/plan_time.h"

enum {
    PLAN_AHEAD = FSDP_N_KINDS, /* a term of its own: room for running ahead */
    PLAN_N_TERMS = FSDP_N_KINDS + 1,
};

/* Strategies, least sharding first. */
extern const uint32_t plan_order[CASE_N_STRATEGIES];

/* One strategy on the world that is asked for. */
struct plan_row {
    struct run_case c;
    bool possible; /* false: this world has no mesh for a hybrid strategy */
    struct plan_bytes bytes;
    bool fits;
    struct plan_time time; /* seconds is 0 if no time was asked for */
    uint32_t binding; /* the largest term of the peak: a kind, or PLAN_AHEAD */
};

struct plan_table {
    struct plan_row row[CASE_N_STRATEGIES]; /* in plan_order */
    uint32_t n;
    uint64_t memory;      /* of a rank; 0: unknown */
    uint64_t activations; /* in addition to what is counted */
    uint32_t best;        /* of row[], the first that fits; n: none does */
};

/*
 * Plans `ask->c` with each strategy, or only with its own (`one`). Hybrid ones
 * have its replicas, or if that is 1 as many as `host` ranks make full hosts,
 * or two. As plan_bytes_make. *out is to be released whatever is returned.
 */
int plan_table_make(const struct plan_ask *ask, bool one, uint32_t host,
                    uint64_t memory, uint64_t activations,
                    struct plan_table *out, struct fsdp_error *error);
/* The time of each row that is possible. As plan_time_make. */
int plan_table_time(const struct plan_ask *ask, const struct plan_model *m,
                    const struct plan_batch *batch, const struct cluster *on,
                    struct plan_table *t, struct fsdp_error *error);
/* The fastest of the rows that fit and were timed; NULL: none. */
const struct plan_row *plan_fastest(const struct plan_table *t);
void plan_table_release(struct plan_table *t);

/* "param-full", or "running-ahead". */
const char *plan_term_name(uint32_t term);
/* A term of a row's peak, in bytes. */
uint64_t plan_term(const struct plan_row *row, uint32_t term);
/* How much a rank needs: the peak and the activations. */
uint64_t plan_need(const struct plan_table *t, const struct plan_row *row);
/* The possible row that needs least. */
const struct plan_row *plan_smallest(const struct plan_table *t);

#endif

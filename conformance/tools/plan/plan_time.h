/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_time.h - how long a step takes: its tasks on compute and on the links of
 * a cluster.
 */
#ifndef FSDP_CTS_PLAN_TIME_H
#define FSDP_CTS_PLAN_TIME_H

#include "tools/plan/cluster.h"
#include "tools/plan/plan_model.h"
#include "tools/plan/schedule.h"

/* The batch of one rank and one microbatch. */
struct plan_batch {
    uint64_t tokens;   /* of all its sequences */
    uint64_t sequence; /* tokens of one */
    double recompute;  /* share of the forward compute of modules marked
                        * `checkpoint` that the backward computes again */
};

struct plan_span {
    double start, end; /* seconds from the step's beginning */
};

struct plan_time {
    double seconds;                  /* of the step */
    double compute;                  /* seconds of compute by itself */
    double contended;                /* seconds that communication took from
                                      * compute */
    double exposed;                  /* seconds in which compute waited for
                                      * communication */
    double busy[SCHEDULE_N_STREAMS]; /* of each stream; compute without
                                      * contended */
    double flops; /* that the model needs: forward and backward, no recompute */
    double done;  /* the same with recompute */
    double *exposed_by_unit; /* [n_units] */
    struct plan_span *span;  /* [schedule.n] */
};

/* Finds the seconds of each task; *out is the caller's, to be freed. NOMEM. */
int plan_durations(const struct plan_ask *ask, const struct plan_model *m,
                   const struct plan_batch *batch, const struct cluster *on,
                   const struct schedule *s, double **out);
/* Simulates a step with the `duration` of each task, >= 0. A collective takes
 * `contention` times its duration from the compute that comes next. The step's
 * seconds never become fewer when any of these grows. flops and done stay 0.
 * NOMEM. *out is to be released whatever is returned. */
int plan_simulate(const struct schedule *s, uint32_t n_units,
                  const double *duration, double contention,
                  struct plan_time *out);
/* Makes the schedule, finds the durations and simulates. As schedule_make. */
int plan_time_make(const struct plan_ask *ask, const struct plan_model *m,
                   const struct plan_batch *batch, const struct cluster *on,
                   struct plan_time *out, struct fsdp_error *error);
void plan_time_release(struct plan_time *t); /* any state */

#endif

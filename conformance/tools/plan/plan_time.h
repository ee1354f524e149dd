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
    double recompute;  /* share of what modules marked `checkpoint` compute in
                          the forward that the backward computes again */
};

struct plan_span {
    double start, end; /* seconds from the step's beginning */
};

struct plan_time {
    double seconds;                  /* of the step */
    double compute;                  /* of compute by itself */
    double contended;                /* that communication took from compute */
    double exposed;                  /* compute waited for communication */
    double busy[SCHEDULE_N_STREAMS]; /* without what is taken */
    double flops; /* that the model needs: forward and backward, no recompute */
    double done;  /* with what is recomputed */
    double *exposed_by_unit; /* [n_units] */
    struct plan_span *span;  /* [schedule.n] */
};

/* Seconds of each task; *out is the caller's, to be freed. NOMEM. */
int plan_durations(const struct plan_ask *ask, const struct plan_model *m,
                   const struct plan_batch *batch, const struct cluster *on,
                   const struct schedule *s, double **out);
/* `duration` of each task, >= 0. A collective takes `contention` times its
 * duration from the compute that comes next. The step's seconds are never
 * fewer when any of these is more. flops and done are left at 0. NOMEM. *out is
 * to be released whatever is returned. */
int plan_simulate(const struct schedule *s, uint32_t n_units,
                  const double *duration, double contention,
                  struct plan_time *out);
/* All of it. As schedule_make. */
int plan_time_make(const struct plan_ask *ask, const struct plan_model *m,
                   const struct plan_batch *batch, const struct cluster *on,
                   struct plan_time *out, struct fsdp_error *error);
void plan_time_release(struct plan_time *t); /* any state */

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_time.c - tasks in time: each stream does one after the other, and
 * what communicates takes a share of its time from compute.
 */
#include "tools/plan/plan_time.h"
#include "record/record_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of each element of a shard that a step of an optimizer reads and
 * writes: weight and gradient, and each state twice. */
static double bytes_of_step(uint32_t optimizer)
{
    static const double bytes[] = {[FSDP_OPTIMIZER_SGD] = 12.0,
                                   [FSDP_OPTIMIZER_MOMENTUM] = 20.0,
                                   [FSDP_OPTIMIZER_ADAMW] = 28.0};

    return bytes[optimizer];
}

/* Whether a module, or one above it, may be recomputed. */
static bool is_checkpointed(const struct plan_model *m, uint32_t module)
{
    int32_t at = (int32_t)module;

    while (at >= 0 && !m->work[at].checkpoint) {
        at = m->model.module_parent[at];
    }
    return at >= 0;
}

static double forward_flops(const struct plan_model *m,
                            const struct plan_batch *batch, uint32_t module)
{
    const struct plan_work *const w = &m->work[module];

    return (double)batch->tokens *
           (w->flops + 4.0 * w->attention * (double)batch->sequence);
}

/* In forwards of the module. */
static double share_of(const struct plan_model *m,
                       const struct plan_batch *batch,
                       const struct schedule_task *t)
{
    if (t->point != FSDP_PRE_BACKWARD) {
        return 1.0;
    }
    return is_checkpointed(m, t->module) ? 2.0 + batch->recompute : 2.0;
}

static double communicate(const struct plan_ask *ask, const struct cluster *on,
                          const struct schedule_task *t)
{
    const uint32_t shards = ask->c.ranks / ask->c.replicas;
    const double element = (double)fsdp_dtype_bytes(t->dtype);

    if (t->kind == FSDP_ALL_REDUCE) {
        return 2.0 * cluster_seconds(
                         on, cluster_replica_group(on, ask->c.replicas, shards),
                         (double)t->elements * element);
    }
    return cluster_seconds(on, cluster_shard_group(on, shards),
                           (double)t->elements * shards * element);
}

int plan_durations(const struct plan_ask *ask, const struct plan_model *m,
                   const struct plan_batch *batch, const struct cluster *on,
                   const struct schedule *s, double **out)
{
    double *const d = calloc((size_t)s->n + 1, sizeof(*d));

    *out = d;
    if (!d) {
        return FSDP_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < s->n; i++) {
        const struct schedule_task *const t = &s->task[i];

        if (t->stream != SCHEDULE_COMPUTE) {
            d[i] = communicate(ask, on, t);
        } else if (t->point == FSDP_END) {
            d[i] = bytes_of_step(ask->c.optimizer) * (double)s->chunk /
                   on->memory_bandwidth;
        } else {
            d[i] = share_of(m, batch, t) * forward_flops(m, batch, t->module) /
                   on->flops;
        }
    }
    return FSDP_OK;
}

/* When a task may start: behind the one before it in its stream, and all that
 * it waits for. *last: what that is, of the latter; NONE: of none. */
static double start_of(const struct schedule *s, const struct plan_time *t,
                       uint32_t task, double free, uint32_t *last)
{
    double start = free;

    *last = SCHEDULE_NONE;
    for (int i = 0; i < 2; i++) {
        const uint32_t other = s->task[task].after[i];

        if (other != SCHEDULE_NONE && t->span[other].end > start) {
            start = t->span[other].end;
            *last = other;
        }
    }
    return start;
}

/* Tasks wait for earlier ones alone, so that one pass over them is enough. */
static void run(const struct schedule *s, const double *duration,
                double contention, struct plan_time *t)
{
    double free[SCHEDULE_N_STREAMS] = {0.0};
    double taken = 0.0; /* from compute, by collectives since the last one */

    for (uint32_t i = 0; i < s->n; i++) {
        const uint32_t stream = s->task[i].stream;
        uint32_t last;

        t->span[i].start = start_of(s, t, i, free[stream], &last);
        t->span[i].end = t->span[i].start + duration[i];
        if (stream != SCHEDULE_COMPUTE) {
            taken += contention * duration[i];
        } else {
            if (last != SCHEDULE_NONE) {
                const double wait = t->span[i].start - free[stream];

                t->exposed += wait;
                t->exposed_by_unit[s->task[last].unit] += wait;
            }
            t->span[i].end += taken;
            t->contended += taken;
            t->compute += duration[i];
            taken = 0.0;
        }
        t->busy[stream] += duration[i];
        free[stream] = t->span[i].end;
        t->seconds = fmax(t->seconds, t->span[i].end);
    }
}

int plan_simulate(const struct schedule *s, uint32_t n_units,
                  const double *duration, double contention,
                  struct plan_time *out)
{
    memset(out, 0, sizeof(*out));
    out->span = calloc((size_t)s->n + 1, sizeof(*out->span));
    out->exposed_by_unit =
        calloc((size_t)n_units + 1, sizeof(*out->exposed_by_unit));
    if (!out->span || !out->exposed_by_unit) {
        plan_time_release(out);
        return FSDP_ERR_NOMEM;
    }
    run(s, duration, contention, out);
    return FSDP_OK;
}

static void count_flops(const struct plan_model *m,
                        const struct plan_batch *batch,
                        const struct schedule *s, struct plan_time *out)
{
    for (uint32_t i = 0; i < s->n; i++) {
        const struct schedule_task *const t = &s->task[i];

        if (t->stream == SCHEDULE_COMPUTE && t->point != FSDP_END) {
            const double forward = forward_flops(m, batch, t->module);

            out->done += share_of(m, batch, t) * forward;
            out->flops += t->point == FSDP_PRE_FORWARD    ? forward
                          : t->point == FSDP_PRE_BACKWARD ? 2.0 * forward
                                                          : 0.0;
        }
    }
}

int plan_time_make(const struct plan_ask *ask, const struct plan_model *m,
                   const struct plan_batch *batch, const struct cluster *on,
                   struct plan_time *out, struct fsdp_error *error)
{
    struct schedule s;
    double *duration = NULL;
    int status = schedule_make(ask, &s, error);

    memset(out, 0, sizeof(*out));
    if (status == FSDP_OK) {
        status = plan_durations(ask, m, batch, on, &s, &duration);
    }
    if (status == FSDP_OK) {
        status = plan_simulate(&s, ask->units->n_units, duration,
                               on->contention, out);
    }
    if (status == FSDP_OK) {
        count_flops(m, batch, &s, out);
    }
    free(duration);
    schedule_release(&s);
    return status == FSDP_OK ? FSDP_OK
                             : record_fail(error, status, "plan", "%s",
                                           fsdp_status_text(status));
}

void plan_time_release(struct plan_time *t)
{
    free(t->span);
    free(t->exposed_by_unit);
    memset(t, 0, sizeof(*t));
}

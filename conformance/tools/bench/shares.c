/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shares.c - a walk over all begins and ends in the order of time, knowing how
 * many spans of each class run: what lies between two neighbours is of one.
 */
#include "tools/bench/shares.h"

#include <math.h>
#include <stdlib.h>

const char *const share_name[N_SHARES] = {
    [SHARE_ATTENTION] = "attention", [SHARE_GEMM] = "gemm",
    [SHARE_REST] = "rest",           [SHARE_COMMUNICATION] = "exposed",
    [SHARE_IDLE] = "idle",
};
const char *const share_name_communication = "communication";

uint32_t share_of_operator(uint32_t kind)
{
    switch (kind) {
    case FSDP_OP_GEMM:
    case FSDP_OP_GEMM_GRAD:
        return SHARE_GEMM;
    case FSDP_OP_ATTENTION:
    case FSDP_OP_ATTENTION_BACKWARD:
        return SHARE_ATTENTION;
    default:
        return SHARE_REST;
    }
}

/* From this time on one more span of a class runs, or one less. */
struct edge {
    double at;
    uint32_t share;
    int by;
};

static int by_time(const void *a, const void *b)
{
    const struct edge *x = a;
    const struct edge *y = b;

    return (x->at > y->at) - (x->at < y->at);
}

static bool is_good(const struct share_span *s)
{
    return isfinite(s->begin) && isfinite(s->end) && s->end >= s->begin &&
           s->share < SHARE_IDLE;
}

static double within(double at, double begin, double end)
{
    return at < begin ? begin : at > end ? end : at;
}

static uint32_t first_running(const int64_t running[N_SHARES])
{
    uint32_t share = 0;

    while (share < SHARE_IDLE && running[share] == 0) {
        share++;
    }
    return share;
}

static void walk(const struct edge *edge, size_t n, double begin, double end,
                 struct shares *out)
{
    int64_t running[N_SHARES] = {0};
    double last = begin;

    for (size_t i = 0; i <= n; i++) {
        double now = i < n ? edge[i].at : end;

        out->of[first_running(running)] += now - last;
        if (running[SHARE_COMMUNICATION] > 0) {
            out->communication += now - last;
        }
        last = now;
        if (i < n) {
            running[edge[i].share] += edge[i].by;
        }
    }
    for (uint32_t s = 0; s < N_SHARES; s++) {
        out->of[s] /= end - begin;
    }
    out->communication /= end - begin;
}

int shares_find(const struct share_span *span, size_t n, double begin,
                double end, struct shares *out)
{
    struct edge *edge;

    *out = (struct shares){0};
    if (!isfinite(begin) || !isfinite(end) || !(end > begin)) {
        return FSDP_ERR_INVALID;
    }
    for (size_t i = 0; i < n; i++) {
        if (!is_good(&span[i])) {
            return FSDP_ERR_INVALID;
        }
    }
    edge = calloc(n + 1, 2 * sizeof(*edge));
    if (!edge) {
        return FSDP_ERR_NOMEM;
    }
    for (size_t i = 0; i < n; i++) {
        edge[2 * i] =
            (struct edge){within(span[i].begin, begin, end), span[i].share, 1};
        edge[2 * i + 1] =
            (struct edge){within(span[i].end, begin, end), span[i].share, -1};
    }
    qsort(edge, 2 * n, sizeof(*edge), by_time);
    walk(edge, 2 * n, begin, end, out);
    free(edge);
    return FSDP_OK;
}

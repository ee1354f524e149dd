/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_bytes.c - counts what the oracle shows of a step, in bytes.
 */
#include "tools/plan/plan_bytes.h"
#include "record/record_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct counter {
    struct plan_bytes *out;
    uint64_t live[FSDP_N_KINDS];
    uint64_t host[FSDP_N_KINDS]; /* the same there, */
    uint64_t host_peak[FSDP_N_KINDS];
    uint32_t room;
    bool began;  /* a step: what rests is there */
    bool failed; /* out of memory */
};

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t sum_of(const uint64_t live[FSDP_N_KINDS])
{
    uint64_t sum = 0;

    for (uint32_t k = 0; k < FSDP_N_KINDS; k++) {
        sum += live[k];
    }
    return sum;
}

/* A moment is kept; room is doubled whenever it is full. */
static void keep_moment(struct counter *c)
{
    struct plan_bytes *const out = c->out;
    struct plan_moment *moment = out->moment;

    if (!c->began) {
        return;
    }
    if (out->n_moments == c->room) {
        c->room = c->room == 0 ? 64 : 2 * c->room;
        moment = realloc(moment, c->room * sizeof(*moment));
        if (!moment) {
            c->failed = true;
            c->room = out->n_moments;
            return;
        }
        out->moment = moment;
    }
    memcpy(moment[out->n_moments++].live, c->live, sizeof(c->live));
}

/* The first moment of a step is what rests. */
static void begin(struct counter *c)
{
    if (!c->began) {
        c->began = true;
        keep_moment(c);
    }
}

static void look(struct counter *c)
{
    struct plan_bytes *const out = c->out;
    const uint64_t sum = sum_of(c->live);

    for (uint32_t k = 0; k < FSDP_N_KINDS; k++) {
        out->peak[k] = larger(out->peak[k], c->live[k]);
    }
    out->peak_parameters =
        larger(out->peak_parameters,
               c->live[FSDP_PARAM_SHARD] + c->live[FSDP_PARAM_FULL]);
    if (sum > out->peak_sum) {
        out->peak_sum = sum;
        memcpy(out->fullest.live, c->live, sizeof(c->live));
    }
    keep_moment(c);
}

static void look_at_host(struct counter *c, uint32_t kind, uint64_t bytes,
                         bool lives)
{
    uint64_t *const live = &c->host[kind];

    *live = lives ? *live + bytes : *live - bytes;
    c->host_peak[kind] = larger(c->host_peak[kind], *live);
    c->out->host_peak = larger(c->out->host_peak, sum_of(c->host));
}

static void see_live(void *context, uint32_t kind, uint64_t bytes, bool lives)
{
    struct counter *const c = context;

    if (kind >= RECORD_HOST) {
        look_at_host(c, kind - RECORD_HOST, bytes, lives);
        return;
    }
    c->live[kind] = lives ? c->live[kind] + bytes : c->live[kind] - bytes;
    look(c);
}

static void see_collective(void *context, const struct record_collective *c)
{
    struct counter *const counter = context;
    struct plan_bytes *const out = counter->out;
    const uint64_t bytes = c->n * fsdp_dtype_bytes(c->dtype);
    const uint64_t others =
        c->dim == FSDP_DIM_SHARD ? out->shards - 1u : out->replicas - 1u;

    out->collectives[c->kind]++;
    if (c->kind == FSDP_ALL_REDUCE) { /* a ring sends 2 (R - 1) / R of the
                                       * bytes, rounded up */
        out->sent[c->kind] += 2 * bytes - 2 * bytes / out->replicas;
    } else {
        out->sent[c->kind] += others * bytes;
    }
}

static void see_point(void *context, uint32_t point, uint32_t module)
{
    (void)point;
    (void)module;
    begin(context);
}

static void see_window(void *context, uint32_t unit, bool opens, bool backward)
{
    (void)unit;
    (void)opens;
    (void)backward;
    begin(context);
}

/* How much running ahead may add: the oracle's bound less what was counted. No
 * walk shows it. */
static void allow_for_running_ahead(const struct expect *e,
                                    const struct counter *c,
                                    struct plan_bytes *out)
{
    for (uint32_t k = 0; k < FSDP_N_KINDS; k++) {
        out->host_peak += e->peak[RECORD_HOST + k] - c->host_peak[k];
        out->host_peaks += e->peak[RECORD_HOST + k];
    }
    out->ahead = e->peak_engine - out->peak_sum;
    out->peak_sum = e->peak_engine;
    out->peak_parameters = e->peak_parameters;
    memcpy(out->peak, e->peak, sizeof(out->peak));
}

static int count_last(const struct expect *e, struct plan_bytes *out)
{
    struct expect_part *part;
    uint32_t n;

    FSDP_TRY(expect_parts(e, e->shards - 1, &part, &n));
    for (uint32_t i = 0; i < n; i++) {
        out->own_last += part[i].n;
    }
    free(part);
    out->padding = e->resting * e->shards - e->total;
    return FSDP_OK;
}

bool plan_is_countable(const struct fsdp_model *model, uint32_t n_units,
                       uint32_t shards)
{
    /* A padded row more in each shard at most, of which 500 times as many bytes
     * are at rest, gathered, staged and sent. */
    const uint64_t most = (uint64_t)1 << 54;
    uint64_t sum = (uint64_t)n_units * shards;

    for (uint32_t p = 0; p < model->n_parameters; p++) {
        uint64_t n = 1;
        uint64_t row = 1;

        for (uint32_t d = 0; d < model->parameter_n_dims[p]; d++) {
            const uint64_t extent = model->parameter_shape[p][d];

            if (__builtin_mul_overflow(n, extent, &n) ||
                (d > 0 && __builtin_mul_overflow(row, extent, &row))) {
                return false;
            }
        }
        if (__builtin_mul_overflow(row, shards, &row) ||
            __builtin_add_overflow(sum, n, &sum) ||
            __builtin_add_overflow(sum, row, &sum) || sum > most) {
            return false;
        }
    }
    return true;
}

static int check(const struct plan_ask *ask, struct fsdp_error *error)
{
    const struct run_case *const c = &ask->c;

    if (c->ranks < 1 || c->ranks > EXPECT_MAX_RANKS || c->replicas < 1 ||
        c->ranks % c->replicas != 0) {
        return record_fail(error, FSDP_ERR_INVALID, "plan",
                           "no mesh of %u ranks, from 1 to %d, has %u "
                           "replicas: they divide the ranks",
                           c->ranks, (int)EXPECT_MAX_RANKS, c->replicas);
    }
    if (!plan_is_countable(ask->model, ask->units->n_units,
                           c->ranks / c->replicas)) {
        return record_fail(error, FSDP_ERR_INVALID, "plan",
                           "the model's bytes are beyond 2^63");
    }
    return FSDP_OK;
}

/* Only where something is frozen can they be. */
static bool has_uneven_states(const struct expect *e)
{
    bool freezes = false;
    bool uneven = false;

    for (uint32_t u = 0; u < e->units->n_units; u++) {
        freezes = freezes || e->unit[u].freezes;
    }
    for (uint32_t k = 0; freezes && !uneven && k < e->shards; k++) {
        uneven = expect_states_less(e, k) > 0;
    }
    return uneven;
}

int plan_bytes_make(const struct plan_ask *ask, struct plan_bytes *out,
                    struct fsdp_error *error)
{
    struct counter c = {.out = out};
    const struct expect_watch watch = {see_live, see_collective, see_window,
                                       see_point, &c};
    struct expect e = {0};
    int status;

    memset(out, 0, sizeof(*out));
    FSDP_TRY(check(ask, error));
    out->replicas = ask->c.replicas;
    out->shards = ask->c.ranks / ask->c.replicas;
    status = expect_make_watched(&ask->c, ask->model, ask->units, ask->idle,
                                 &watch, &e);
    if (status == FSDP_OK && c.failed) {
        status = FSDP_ERR_NOMEM;
    }
    if (status == FSDP_OK) {
        out->elements = e.total;
        out->largest = e.largest;
        out->units = ask->units->n_units;
        memcpy(out->rest.live, e.rest.live, sizeof(out->rest.live));
        out->rest_sum = sum_of(out->rest.live);
        out->host_rest = sum_of(&e.rest.live[RECORD_HOST]);
        out->copied = e.hosted;
        out->is_uneven = has_uneven_states(&e);
        allow_for_running_ahead(&e, &c, out);
        for (uint32_t k = 0; k < FSDP_N_COLLECTIVES; k++) {
            out->sent_sum += out->sent[k];
        }
        status = count_last(&e, out);
    }
    expect_release(&e);
    if (status != FSDP_OK) {
        plan_bytes_release(out);
        return record_fail(error, status, "plan",
                           status == FSDP_ERR_NOMEM
                               ? "out of memory"
                               : "the oracle has no rules for this model: a "
                                 "frozen or tied parameter, another dtype "
                                 "than f32, or a window that never closes");
    }
    return FSDP_OK;
}

void plan_bytes_release(struct plan_bytes *b)
{
    free(b->moment);
    memset(b, 0, sizeof(*b));
}

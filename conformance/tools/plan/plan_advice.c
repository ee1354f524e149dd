/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_advice.c - the least sharding that fits.
 */
#include "tools/plan/plan_advice.h"

#include <string.h>

const uint32_t plan_order[CASE_N_STRATEGIES] = {
    CASE_NO_SHARD, CASE_SHARD_GRAD_OP, CASE_HYBRID_SHARD_ZERO2,
    CASE_HYBRID_SHARD, CASE_FULL_SHARD};

const char *plan_term_name(uint32_t term)
{
    return term == PLAN_AHEAD ? "running-ahead" : record_kind_name(term);
}

uint64_t plan_term(const struct plan_row *row, uint32_t term)
{
    return term == PLAN_AHEAD ? row->bytes.ahead
                              : row->bytes.fullest.live[term];
}

uint64_t plan_need(const struct plan_table *t, const struct plan_row *row)
{
    return row->bytes.peak_sum + t->activations;
}

const struct plan_row *plan_smallest(const struct plan_table *t)
{
    const struct plan_row *best = NULL;

    for (uint32_t i = 0; i < t->n; i++) {
        const struct plan_row *const row = &t->row[i];

        if (row->possible &&
            (!best || row->bytes.peak_sum < best->bytes.peak_sum)) {
            best = row;
        }
    }
    return best;
}

static bool is_hybrid(uint32_t strategy)
{
    return strategy == CASE_HYBRID_SHARD || strategy == CASE_HYBRID_SHARD_ZERO2;
}

/* How many replicas a strategy has in this world; 0: there is no such mesh. */
static uint32_t replicas_of(const struct run_case *c, uint32_t strategy,
                            uint32_t host)
{
    uint32_t replicas = c->replicas;

    if (strategy == CASE_NO_SHARD) {
        return c->ranks;
    }
    if (!is_hybrid(strategy)) {
        return 1;
    }
    if (replicas <= 1) {
        replicas = host > 1 && c->ranks % host == 0 ? c->ranks / host : 2;
    }
    return replicas >= 2 && replicas < c->ranks && c->ranks % replicas == 0
               ? replicas
               : 0;
}

static int fill(const struct plan_ask *ask, uint32_t strategy, uint32_t host,
                struct plan_table *t, struct fsdp_error *error)
{
    struct plan_row *const row = &t->row[t->n++];
    struct plan_ask one = *ask;

    one.c.strategy = strategy;
    one.c.replicas = replicas_of(&ask->c, strategy, host);
    row->c = one.c;
    row->possible = one.c.replicas > 0;
    if (!row->possible) {
        return FSDP_OK;
    }
    FSDP_TRY(plan_bytes_make(&one, &row->bytes, error));
    for (uint32_t k = 1; k < PLAN_N_TERMS; k++) {
        if (plan_term(row, k) > plan_term(row, row->binding)) {
            row->binding = k;
        }
    }
    row->fits =
        t->memory == 0 || (t->activations <= t->memory &&
                           row->bytes.peak_sum <= t->memory - t->activations);
    return FSDP_OK;
}

int plan_table_make(const struct plan_ask *ask, bool one, uint32_t host,
                    uint64_t memory, uint64_t activations,
                    struct plan_table *out, struct fsdp_error *error)
{
    memset(out, 0, sizeof(*out));
    out->memory = memory;
    out->activations = activations;
    for (uint32_t i = 0; i < CASE_N_STRATEGIES; i++) {
        if (!one || plan_order[i] == ask->c.strategy) {
            FSDP_TRY(fill(ask, plan_order[i], host, out, error));
        }
    }
    while (out->best < out->n &&
           !(out->row[out->best].possible && out->row[out->best].fits)) {
        out->best++;
    }
    return FSDP_OK;
}

int plan_table_time(const struct plan_ask *ask, const struct plan_model *m,
                    const struct plan_batch *batch, const struct cluster *on,
                    struct plan_table *t, struct fsdp_error *error)
{
    for (uint32_t i = 0; i < t->n; i++) {
        struct plan_ask one = *ask;

        one.c = t->row[i].c;
        if (t->row[i].possible) {
            FSDP_TRY(
                plan_time_make(&one, m, batch, on, &t->row[i].time, error));
        }
    }
    return FSDP_OK;
}

const struct plan_row *plan_fastest(const struct plan_table *t)
{
    const struct plan_row *best = NULL;

    for (uint32_t i = 0; i < t->n; i++) {
        const struct plan_row *const row = &t->row[i];

        if (row->possible && row->fits && row->time.span &&
            (!best || row->time.seconds < best->time.seconds)) {
            best = row;
        }
    }
    return best;
}

void plan_table_release(struct plan_table *t)
{
    for (uint32_t i = 0; i < t->n; i++) {
        plan_time_release(&t->row[i].time);
        plan_bytes_release(&t->row[i].bytes);
    }
    memset(t, 0, sizeof(*t));
}

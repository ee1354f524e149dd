/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_check.c - a record against a plan: bytes, and collectives.
 */
#include "tools/plan/plan_check.h"

#include "tools/plan/schedule.h"

#include <inttypes.h>
#include <stdio.h>

struct checker {
    const struct plan_ask *ask;
    const struct plan_bytes *b;
    uint32_t rank, differences;
    bool bounds; /* what is measured may be less */
};

static void compare(struct checker *c, const char *what, uint64_t measured,
                    uint64_t planned, bool may_be_less)
{
    if (measured == planned || (may_be_less && measured < planned)) {
        return;
    }
    printf("rank %u: %s: %" PRIu64 " in the record, %" PRIu64 " planned\n",
           c->rank, what, measured, planned);
    c->differences++;
}

/* A rank that loads a whole tensor stages it. That is no part of a step, and
 * may be more than its peak if values on the wire are narrow. It is never more
 * than the largest unit. */
static uint64_t peak_of(const struct checker *c, uint32_t kind,
                        uint64_t measured)
{
    const uint64_t planned = c->b->peak[kind];
    const bool loads = kind == FSDP_STAGING &&
                       c->ask->c.scenario == CASE_RESUME_FULL &&
                       measured <= c->b->largest * sizeof(float);

    return loads && measured > planned ? measured : planned;
}

static void check_memory(struct checker *c, const struct record_memory *m)
{
    char what[64];

    for (uint32_t k = 0; k < FSDP_N_KINDS; k++) {
        const bool fewer = k == FSDP_OPTIM && c->b->is_uneven;

        if (k == FSDP_ACTIVATION) {
            continue; /* the model's own */
        }
        snprintf(what, sizeof(what), "%s at rest", record_kind_name(k));
        compare(c, what, m->after_shard.live[k], c->b->rest.live[k], fewer);
        snprintf(what, sizeof(what), "%s at its peak", record_kind_name(k));
        compare(c, what, m->peak[k], peak_of(c, k, m->peak[k]),
                c->bounds || fewer);
    }
    compare(c, "parameters at their peak", m->peak_parameters,
            c->b->peak_parameters, c->bounds);
    compare(c, "the engine's peak", m->peak_engine, c->b->peak_sum,
            c->bounds || c->b->is_uneven);
}

/* All kinds together: at rest, and each at its own peak. Ranks differ in what
 * they hold of their states. */
static void check_host(struct checker *c, const struct record_memory *m)
{
    uint64_t rest = 0;
    uint64_t peak = 0;

    for (uint32_t k = RECORD_HOST; k < RECORD_N_KINDS; k++) {
        rest += m->after_shard.live[k];
        peak += m->peak[k];
    }
    compare(c, "the host at rest", rest, c->b->host_rest, c->b->is_uneven);
    compare(c, "the host's kinds at their peaks", peak, c->b->host_peaks,
            c->bounds || c->b->is_uneven);
    if (m->hosted && c->ask->c.scenario == CASE_TRAIN) {
        compare(c, "copied to the device a step", m->hosted[0].to_device_bytes,
                c->b->copied.to_device_bytes, false);
        compare(c, "copied to the host a step", m->hosted[0].to_host_bytes,
                c->b->copied.to_host_bytes, false);
    }
}

static void count(const struct record_sequence *s,
                  uint32_t calls[FSDP_N_COLLECTIVES])
{
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->c[i].kind < FSDP_N_COLLECTIVES) {
            calls[s->c[i].kind]++;
        }
    }
}

/* Compares collectives of the first step, and those after the last one. */
static void check_collectives(struct checker *c, const struct record_rank *r)
{
    uint32_t calls[FSDP_N_COLLECTIVES] = {0};

    if (r->n_steps > 0 && r->step_sequence[0] < r->n_sequences) {
        count(&r->sequence[r->step_sequence[0]], calls);
    }
    if (r->end_sequence < r->n_sequences) {
        count(&r->sequence[r->end_sequence], calls);
    }
    for (uint32_t k = 0; k < FSDP_N_COLLECTIVES; k++) {
        char what[64];

        snprintf(what, sizeof(what), "%ss a step", record_collective_name(k));
        compare(c, what, calls[k], c->b->collectives[k],
                c->ask->c.scenario == CASE_CANCEL && c->bounds);
    }
}

/* Whether the first step's collectives are in the order of the simulation. */
static bool is_simulated(const struct schedule *s, const struct record_rank *r)
{
    const struct record_sequence *q;
    uint32_t at = 0;

    if (r->n_steps == 0 || r->step_sequence[0] >= r->n_sequences) {
        return false;
    }
    q = &r->sequence[r->step_sequence[0]];
    for (uint32_t i = 0; i < s->n; i++) {
        const struct schedule_task *const t = &s->task[i];

        if (t->stream == SCHEDULE_COMPUTE) {
            continue;
        }
        if (at == q->n || q->c[at].kind != t->kind ||
            q->c[at].unit != t->unit) {
            return false;
        }
        at++;
    }
    return at == q->n;
}

static int check_order(struct checker *c, const struct record *r)
{
    struct schedule s;
    uint32_t same = 0;
    const int status = schedule_make(c->ask, &s, NULL);

    for (uint32_t i = 0; status == FSDP_OK && i < r->n_ranks; i++) {
        same += r->rank[i].present && is_simulated(&s, &r->rank[i]);
    }
    schedule_release(&s);
    if (status != FSDP_OK) {
        return status;
    }
    printf("%u of %u ranks communicate in the order of the simulation\n", same,
           r->n_ranks);
    c->differences += c->bounds ? 0 : r->n_ranks - same;
    return FSDP_OK;
}

int plan_check(const struct plan_ask *ask, const struct plan_bytes *b,
               const struct record *r, uint32_t *n)
{
    const struct run_case *const k = &ask->c;
    struct checker c = {.ask = ask,
                        .b = b,
                        .bounds = k->prefetch_forward > 0 ||
                                  k->prefetch_backward > 0 ||
                                  k->reduces_in_flight > 0};

    for (c.rank = 0; c.rank < r->n_ranks; c.rank++) {
        const struct record_rank *const rank = &r->rank[c.rank];

        if (!rank->present) {
            printf("rank %u: left no record\n", c.rank);
            c.differences++;
            continue;
        }
        check_memory(&c, &rank->memory);
        check_host(&c, &rank->memory);
        check_collectives(&c, rank);
    }
    if (k->scenario == CASE_TRAIN) {
        FSDP_TRY(check_order(&c, r));
    }
    if (c.differences == 0) {
        printf("%u ranks have what was planned%s\n", r->n_ranks,
               c.bounds ? ", or less where it runs ahead" : ", to the byte");
    }
    *n = c.differences;
    return FSDP_OK;
}

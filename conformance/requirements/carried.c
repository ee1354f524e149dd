/* SPDX-License-Identifier: Apache-2.0 */
/* carried.c - see carried.h. */
#include "requirements/carried.h"

#include "judge/compare/compare.h"

#include <fsdp/arith/cast.h>
#include <stdlib.h>
#include <string.h>

bool carried_is_known(const struct record *r)
{
    return r->n_ranks > 0 && r->rank && r->rank[0].account.n_payloads > 0;
}

/* What was communicated before the first step (s = 0), in steps (from 1 on),
 * and behind them. */
static const struct record_sequence *sequence_of(const struct record_rank *rank,
                                                 uint32_t s)
{
    return compare_sequence(rank, s == 0 ? rank->shard_sequence
                                  : s <= rank->n_steps
                                      ? rank->step_sequence[s - 1]
                                      : rank->end_sequence);
}

void carried_count(const struct record_rank *rank, uint64_t *carried,
                   uint64_t *shown)
{
    const struct record_traffic *const t = &rank->account.carried;

    *carried = *shown = 0;
    for (uint32_t i = 0; i < t->n_rows && i < RECORD_TRAFFIC_ROWS; i++) {
        *carried += t->row[i].calls;
    }
    for (uint32_t s = 0; s <= rank->n_steps + 1; s++) {
        const struct record_sequence *q = sequence_of(rank, s);

        *shown += q ? q->n : 0;
    }
}

/* Whether the collectives of the file are those that were carried, one for one.
 * A run that cancels passes may carry some more in the end, which are in none
 * of its steps. */
static bool is_followed(const struct expect *e, const struct record_rank *rank)
{
    uint64_t carried;
    uint64_t shown;

    carried_count(rank, &carried, &shown);
    return carried == shown ||
           (e->c->scenario == CASE_CANCEL && carried > shown);
}

bool carried_each(const struct expect *e, const struct record *r, uint32_t k,
                  bool (*visit)(const struct carried *x, void *context,
                                struct finding *f),
                  void *context, struct finding *f)
{
    const struct record_rank *const rank = compare_rank(r, k);
    const struct record_account *const sent = rank ? &rank->account : NULL;
    const bool follows = rank && is_followed(e, rank);
    uint32_t at = 0;

    for (uint32_t s = 0; follows && s <= rank->n_steps + 1; s++) {
        const struct record_sequence *const q = sequence_of(rank, s);

        for (uint32_t i = 0; q && i < q->n; i++, at++) {
            const struct carried x = {.e = e,
                                      .r = r,
                                      .q = q,
                                      .index = i,
                                      .c = &q->c[i],
                                      .rank = k,
                                      .shard = k % e->shards,
                                      .step = s - 1};

            if (at == sent->n_payloads || at == RECORD_PAYLOADS) {
                return at == RECORD_PAYLOADS ||
                       finding_text(f, finding_at("run", s, -1, k),
                                    "nobody has carried what it sent");
            }
            if (s > 0) {
                struct carried y = x;

                y.payload = sent->payload[at];
                y.at = at;
                if (!visit(&y, context, f)) {
                    return false;
                }
            }
        }
    }
    return true;
}

struct first {
    bool (*is)(const struct carried *x, void *context);
    void *context;
    uint32_t at;
    bool found;
};

static bool find_first(const struct carried *x, void *context,
                       struct finding *f)
{
    struct first *const first = context;

    (void)f;
    if (first->is(x, first->context)) {
        first->at = x->at;
        first->found = true;
    }
    return !first->found;
}

bool carried_spoil(const struct expect *e, struct record *r,
                   bool (*is)(const struct carried *x, void *context),
                   void *context)
{
    const uint32_t k = e->c->ranks - 1;
    struct record_rank *const rank = compare_rank_to_spoil(r, k);
    struct first first = {.is = is, .context = context};
    struct finding f;

    (void)carried_each(e, r, k, find_first, &first, &f);
    if (rank && first.found) {
        rank->account.payload[first.at] ^= 1;
    }
    return rank && first.found;
}

static bool each_holds(const struct requirement *q, const struct expect *e,
                       const struct record *r, struct finding *f)
{
    for (uint32_t k = 0; k < e->c->ranks; k++) {
        if (!carried_each(e, r, k, q->carried.holds, NULL, f)) {
            return false;
        }
    }
    return true;
}

static bool each_spoil(const struct requirement *q, const struct expect *e,
                       struct record *r)
{
    return carried_spoil(e, r, q->carried.is, NULL);
}

const struct requirement_check check_carried = {.holds = each_holds,
                                                .spoil = each_spoil};

/* ---- Which they are ------------------------------------------------------ */

static bool is_of_unit(const struct carried *x, uint32_t kind)
{
    return x->c->kind == kind && x->c->dim == FSDP_DIM_SHARD &&
           x->c->unit < x->e->units->n_units && fsdp_is_float(x->c->dtype);
}

bool carried_is_gather(const struct carried *x)
{
    return is_of_unit(x, FSDP_ALL_GATHER) &&
           x->c->n == x->e->unit[x->c->unit].chunk;
}

bool carried_is_reduction(const struct carried *x)
{
    return is_of_unit(x, FSDP_REDUCE_SCATTER) &&
           x->c->n == x->e->unit[x->c->unit].grad_chunk;
}

bool carried_is_evaluated(const struct expect *e, uint32_t unit)
{
    const struct fsdp_sequence *const q =
        e->c->scenario == CASE_EVAL &&
                e->model->n_sequences > FSDP_SEQUENCE_EVAL
            ? e->model->sequence[FSDP_SEQUENCE_EVAL]
            : NULL;

    for (uint32_t i = 0; q && i < q->n; i++) {
        if (expect_is_of(e, q->module[i], unit)) {
            return true;
        }
    }
    return false;
}

bool carried_is_across(const struct carried *x)
{
    return x->c->kind == FSDP_ALL_REDUCE && x->c->dim == FSDP_DIM_REPLICATE &&
           x->c->unit < x->e->units->n_units && fsdp_is_float(x->c->dtype) &&
           x->c->n == x->e->unit[x->c->unit].grad_chunk;
}

struct finding carried_place(const struct carried *x, const char *kind)
{
    struct finding at = finding_at(kind, x->step, -1, x->rank);

    at.unit = x->c->unit;
    return at;
}

/* ---- What they have sent ------------------------------------------------- */

/* The hash of elements [from, from + n), as they go over the wire; `value`
 * NULL: all are +0. */
static uint64_t hash_of(const struct carried *x, const float *value,
                        uint64_t from, uint64_t n, float *wire)
{
    for (uint64_t i = 0; i < n; i++) {
        fsdp_store(x->c->dtype, wire, i, value ? value[from + i] : 0.0f);
    }
    return record_payload_add(0, wire, n * fsdp_dtype_bytes(x->c->dtype));
}

/* The payload of these values (NULL: all +0); 0: there is no memory. In an
 * all-reduce each of the other replicas is sent the block that it adds up;
 * blocks have equally many elements, but the last ones fewer. */
static uint64_t payload_of(const struct carried *x, const float *value)
{
    const bool is_across = x->c->kind == FSDP_ALL_REDUCE;
    const bool reduces = is_across || x->c->kind == FSDP_REDUCE_SCATTER;
    const uint32_t extent = is_across ? x->e->replicas : x->e->shards;
    const uint32_t me = is_across ? x->rank / x->e->shards : x->shard;
    const uint64_t all = reduces && !is_across ? x->c->n * extent : x->c->n;
    const uint64_t each =
        is_across ? all / extent + (all % extent != 0 ? 1 : 0) : x->c->n;
    float *const wire = calloc(each + 1, sizeof(*wire));
    uint64_t payload = 0;

    for (uint32_t i = 0; wire && i < extent; i++) {
        const uint64_t at = reduces ? each * i : 0;
        const uint64_t from = at < all ? at : all;
        const uint64_t n = all - from < each ? all - from : each;
        const bool sends = reduces ? i != me : i == 0;

        payload = record_payload_join(
            payload, sends ? hash_of(x, value, from, n, wire) : 0);
    }
    free(wire);
    return payload;
}

bool carried_is(const struct carried *x, const float *value)
{
    return payload_of(x, value) == x->payload;
}

uint64_t carried_nothing(const struct carried *x)
{
    return payload_of(x, NULL);
}

/* The rank's shard of the unit, put together from the recorded pieces. */
static bool take_shard(const struct carried *x, uint32_t stage, uint32_t step,
                       float *value)
{
    struct expect_part *part = NULL;
    uint32_t n = 0;
    bool good = expect_parts(x->e, x->shard, &part, &n) == FSDP_OK;

    for (uint32_t i = 0; good && i < n; i++) {
        const struct compare_part at = {.rank = x->rank,
                                        .step = step,
                                        .parameter = part[i].parameter,
                                        .unit = x->c->unit,
                                        .first = part[i].first,
                                        .n = part[i].n};
        const float *shown;

        if (x->e->unit_of_parameter[part[i].parameter] != x->c->unit) {
            continue;
        }
        shown = compare_values(x->r, stage, &at);
        good = shown && part[i].local + part[i].n <= x->c->n;
        if (good) {
            memcpy(value + part[i].local, shown, part[i].n * sizeof(*value));
        }
    }
    free(part);
    return good;
}

bool carried_is_shard(const struct carried *x, uint32_t stage, uint32_t step,
                      bool *missing)
{
    float *const value = calloc(x->c->n + 1, sizeof(*value));
    const bool shown = value && take_shard(x, stage, step, value);
    const bool is = shown && carried_is(x, value);

    free(value);
    if (missing) {
        *missing = !shown;
    }
    return is;
}

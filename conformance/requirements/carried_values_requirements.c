/* SPDX-License-Identifier: Apache-2.0 */
/*
 * carried_values_requirements.c - what collectives have carried, beside what
 * the record shows of shards and gradients: an engine that computes with a
 * model that it keeps, or takes gradients by a way of its own, can call as many
 * collectives as others do, and send nothing of worth in them. Asked where
 * ranks are isolated: who carries has a hash of what each has sent.
 */
#include "requirements/families.h"

#include "judge/compare/compare_checks.h"
#include "judge/replay/replay.h"

#include <fsdp/arith/cast.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* A collective whose values are known. */
struct sent {
    const struct expect *e;
    const struct record *r;
    const struct record_collective *c;
    uint32_t rank, step, microbatch;
    uint32_t shard; /* the rank's in its group */
    struct finding at;
    /* What lies there, widened: a shard, or what all shards get. */
    float *value;
    float *wire; /* the same, or narrower, as it goes over it */
};

static bool has_payloads(const struct record *r)
{
    return r->n_ranks > 0 && r->rank && r->rank[0].account.payloads.n > 0;
}

/* Trains alone, so that what was sent is in the rank's file, in order; where
 * ranks meet in some order of theirs, so are their messages. */
static bool is_followed(const struct expect *e)
{
    return compare_case_staged(e) && compare_case_lives_once(e) &&
           e->shards > 1 && !e->any_fold && e->c->ranks <= WORLD_MAX_RANKS;
}

/* Elements [from, from + n), as they go over the wire. */
static uint64_t hash_of(const struct sent *x, uint64_t from, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        fsdp_store(x->c->dtype, x->wire, i, x->value[from + i]);
    }
    return record_payload_add(0, x->wire, n * fsdp_dtype_bytes(x->c->dtype));
}

/* To all alike, or to each of the others its own part. */
static uint64_t payload_of(const struct sent *x)
{
    uint64_t all = 0;

    for (uint32_t i = 0; i < x->e->shards; i++) {
        const bool reduces = x->c->kind == FSDP_REDUCE_SCATTER;
        const bool sends = reduces ? i != x->shard : i == 0;

        all = record_payload_join(
            all, sends ? hash_of(x, reduces ? i * x->c->n : 0, x->c->n) : 0);
    }
    return all;
}

/* ---- What a rank gives ---------------------------------------------------
 */

/* Its shard of the unit, as the pieces were recorded. */
static bool take_shard(struct sent *x, uint32_t stage, struct finding *f)
{
    struct expect_part *part = NULL;
    uint32_t n = 0;
    bool good = expect_parts(x->e, x->shard, &part, &n) == FSDP_OK;

    memset(x->value, 0, x->c->n * sizeof(*x->value));
    for (uint32_t i = 0; good && i < n; i++) {
        const struct compare_part at = {.rank = x->rank,
                                        .step = x->step,
                                        .parameter = part[i].parameter,
                                        .unit = x->c->unit,
                                        .first = part[i].first,
                                        .n = part[i].n};
        const float *value;

        if (x->e->unit_of_parameter[part[i].parameter] != x->c->unit) {
            continue;
        }
        value = compare_values(x->r, stage, &at);
        if (!value) {
            good = compare_missing(&at, stage, f);
        } else if (part[i].local + part[i].n <= x->c->n) {
            memcpy(x->value + part[i].local, value, part[i].n * sizeof(*value));
        }
    }
    free(part);
    return good;
}

/* What this rank has of an element when the microbatch is reduced: those
 * without sync add up to it. */
static float pending_of(const struct replay_reduction *given,
                        const struct sent *x, uint64_t i)
{
    float pending[WORLD_MAX_RANKS];
    bool has = false;

    memset(pending, 0, x->e->c->ranks * sizeof(*pending));
    for (uint32_t b = 0; b <= x->microbatch; b++) {
        replay_accumulate(given, b, i, pending, &has);
        if (b < x->microbatch && x->e->c->sync[b] != 0) {
            memset(pending, 0, x->e->c->ranks * sizeof(*pending));
            has = false;
        }
    }
    return fsdp_round(x->e->unit[x->c->unit].dtype.accumulate,
                      pending[x->rank] * given->factor.before);
}

static bool take_gradient(struct sent *x, struct finding *f)
{
    const uint32_t unit = x->c->unit;
    const struct expect *const e = x->e;

    memset(x->value, 0, x->c->n * e->shards * sizeof(*x->value));
    for (uint32_t p = 0; p < e->model->n_parameters; p++) {
        struct replay_reduction given;
        const struct compare_part whole = {.rank = x->rank,
                                           .step = x->step,
                                           .parameter = p,
                                           .unit = unit,
                                           .n = fsdp_numel(e->model, p)};

        if (e->unit_of_parameter[p] != unit || expect_original(e, p) != p ||
            !e->stepped[p]) {
            continue;
        }
        if (!replay_reduction_find(e, x->r, &whole, &given, f)) {
            return false;
        }
        for (uint64_t i = 0; i < whole.n; i++) {
            const uint64_t place = expect_place_of_gradient(e, p, i);

            if (place < x->c->n * e->shards) {
                x->value[place] = pending_of(&given, x, i);
            }
        }
    }
    return true;
}

/* ---- The collectives of a rank -------------------------------------------
 */

static bool make_room(struct sent *x)
{
    const uint64_t n = x->c->n * x->e->shards + 1;

    x->value = calloc(n, sizeof(*x->value));
    x->wire = calloc(n, sizeof(*x->wire));
    return x->value && x->wire;
}

static void give_back(struct sent *x)
{
    free(x->value);
    free(x->wire);
}

/* What is gathered for a pass is what the step before has left, and what a step
 * amid a pass leaves is gathered behind it. */
static bool gathers_its_shard(struct sent *x, uint64_t payload,
                              struct finding *f)
{
    return (take_shard(x, RECORD_BEFORE, f) && payload_of(x) == payload) ||
           (take_shard(x, RECORD_AFTER, f) && payload_of(x) == payload) ||
           finding_text(f, x->at,
                        "what the rank has sent is neither its shard before "
                        "the step nor the one behind it");
}

static bool reduces_its_gradient(struct sent *x, uint64_t payload,
                                 struct finding *f)
{
    if (!take_gradient(x, f)) {
        return false;
    }
    return payload_of(x) == payload ||
           finding_text(f, x->at,
                        "what the rank has sent is not what its gradients add "
                        "up to");
}

/* Of the unit's shards, of as many elements as they have. */
static bool is_of_shards(const struct expect *e,
                         const struct record_collective *c)
{
    return c->dim == FSDP_DIM_SHARD && c->unit < e->units->n_units &&
           fsdp_is_float(c->dtype) &&
           c->n == (c->kind == FSDP_REDUCE_SCATTER ? e->unit[c->unit].grad_chunk
                                                   : e->unit[c->unit].chunk);
}

/* The microbatch of the unit's reduction number `nth` in a step. */
static bool is_reduced_in(const struct expect *e, uint32_t nth, uint32_t *out)
{
    for (*out = 0; *out < e->c->microbatches; ++*out) {
        if (e->c->sync[*out] != 0 && nth-- == 0) {
            return true;
        }
    }
    return false;
}

/* How often the unit was reduced before that in its step. */
static uint32_t reductions_before(const struct record_sequence *q, uint32_t i)
{
    uint32_t n = 0;

    for (uint32_t k = 0; k < i; k++) {
        n +=
            q->c[k].kind == FSDP_REDUCE_SCATTER && q->c[k].unit == q->c[i].unit;
    }
    return n;
}

static bool holds_of(struct sent *x, uint32_t kind, uint64_t payload,
                     struct finding *f)
{
    bool good;

    x->at =
        finding_at(kind == FSDP_ALL_GATHER ? "all-gather" : "reduce-scatter",
                   x->step, -1, x->rank);
    x->at.unit = x->c->unit;
    if (!make_room(x)) {
        give_back(x);
        return finding_missing(f, x->at, "no memory to compare it in");
    }
    good = kind == FSDP_ALL_GATHER ? gathers_its_shard(x, payload, f)
                                   : reduces_its_gradient(x, payload, f);
    give_back(x);
    return good;
}

/* Calls holds_of for each collective of a kind whose values are recorded. */
static bool rank_holds(const struct expect *e, const struct record *r,
                       uint32_t k, uint32_t kind, struct finding *f)
{
    const struct record_rank *const rank = compare_rank(r, k);
    const struct record_sequence *q =
        rank ? compare_sequence(rank, rank->shard_sequence) : NULL;
    uint32_t index = q ? q->n : 0;

    for (uint32_t s = 0; rank && s < compare_recorded_steps(e); s++) {
        q = compare_step_sequence(rank, s);
        for (uint32_t i = 0; q && i < q->n; i++, index++) {
            struct sent x = {.e = e,
                             .r = r,
                             .c = &q->c[i],
                             .rank = k,
                             .step = s,
                             .shard = k % e->shards};

            if (index >= rank->account.payloads.n) {
                return index >= RECORD_PAYLOADS ||
                       finding_text(f, finding_at("run", s, -1, k),
                                    "nobody has carried what it sent");
            }
            if (x.c->kind == kind && is_of_shards(e, x.c) &&
                (kind == FSDP_ALL_GATHER ||
                 is_reduced_in(e, reductions_before(q, i), &x.microbatch)) &&
                !holds_of(&x, kind, rank->account.payloads.hash[index], f)) {
                return false;
            }
        }
    }
    return true;
}

static bool all_hold(const struct expect *e, const struct record *r,
                     uint32_t kind, struct finding *f)
{
    for (uint32_t k = 0; k < e->c->ranks; k++) {
        if (!rank_holds(e, r, k, kind, f)) {
            return false;
        }
    }
    return true;
}

/* The last rank's first payload of a kind; false: it has none that is looked
 * at. */
static bool spoil(const struct expect *e, struct record *r, uint32_t kind)
{
    struct record_rank *const rank = compare_rank_to_spoil(r, e->c->ranks - 1);
    const struct record_sequence *q =
        rank ? compare_sequence(rank, rank->shard_sequence) : NULL;
    const uint32_t from = q ? q->n : 0;

    q = rank ? compare_step_sequence(rank, 0) : NULL;
    for (uint32_t i = 0; q && i < q->n; i++) {
        if (q->c[i].kind == kind && is_of_shards(e, &q->c[i]) &&
            from + i < rank->account.payloads.n) {
            rank->account.payloads.hash[from + i] ^= 1;
            return true;
        }
    }
    return false;
}

/* comm.carries-shards: a model that is kept whole is gathered for show. */
static bool carries_shards_holds(const struct expect *e, const struct record *r,
                                 struct finding *f)
{
    return all_hold(e, r, FSDP_ALL_GATHER, f);
}

static bool carries_shards_spoil(const struct expect *e, struct record *r)
{
    return spoil(e, r, FSDP_ALL_GATHER);
}

/* comm.carries-gradients: what comes back is right by another way. */
static bool carries_gradients_holds(const struct expect *e,
                                    const struct record *r, struct finding *f)
{
    return all_hold(e, r, FSDP_REDUCE_SCATTER, f);
}

static bool carries_gradients_spoil(const struct expect *e, struct record *r)
{
    return spoil(e, r, FSDP_REDUCE_SCATTER);
}

const struct requirement carried_values_requirements[] = {
    {.id = "comm.carries-shards",
     .text = "Where ranks are isolated, what a rank has sent in an all-gather "
             "of a unit is its shard, bit for bit in the dtype of the wire.",
     .since = "1.1",
     .must = 1,
     .level = LEVEL_COMM,
     .needs = "comm.as-carried",
     .applies = is_followed,
     .looked_at = has_payloads,
     .holds = carries_shards_holds,
     .spoil = carries_shards_spoil},
    {.id = "comm.carries-gradients",
     .text = "Where ranks are isolated, what a rank has sent in a "
             "reduce-scatter of a unit is what its gradients add up to, bit "
             "for bit in the dtype of the wire.",
     .since = "1.1",
     .must = 1,
     .level = LEVEL_COMM,
     .needs = "comm.as-carried",
     .applies = is_followed,
     .looked_at = has_payloads,
     .holds = carries_gradients_holds,
     .spoil = carries_gradients_spoil},
    {0},
};

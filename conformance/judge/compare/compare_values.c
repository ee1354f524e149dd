/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare_values.c - walks over the tensors of a record by the oracle's
 * layout, and comparison of their values in bits.
 */
#include "judge/compare/compare.h"

#include <fsdp/arith/bits.h>
#include <fsdp/arith/cast.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The shard dimension is the last one of the mesh, so it is the fastest. */
static bool walk_rank_parts(
    const struct expect *e, const struct record *r, struct compare_part *part,
    bool (*check)(const struct expect *e, const struct record *r,
                  const struct compare_part *part, struct finding *f),
    struct finding *f)
{
    struct expect_part *owned = NULL;
    uint32_t n = 0;
    bool well = true;

    if (expect_parts(e, part->rank % e->shards, &owned, &n) != FSDP_OK) {
        return finding_text(f, finding_at("layout", -1, -1, part->rank),
                            "the judge has no memory for this rank's parts");
    }
    for (uint32_t i = 0; well && i < n; i++) {
        part->parameter = owned[i].parameter;
        part->unit = e->unit_of_parameter[owned[i].parameter];
        part->first = owned[i].first;
        part->n = owned[i].n;
        well = part->n == 0 || check(e, r, part, f);
    }
    free(owned);
    return well;
}

bool compare_parts(const struct expect *e, const struct record *r,
                   uint32_t from, uint32_t to,
                   bool (*check)(const struct expect *e, const struct record *r,
                                 const struct compare_part *part,
                                 struct finding *f),
                   struct finding *f)
{
    return compare_parts_of(NULL, e, r, from, to, check, f);
}

bool compare_parts_of(const struct requirement *q, const struct expect *e,
                      const struct record *r, uint32_t from, uint32_t to,
                      bool (*check)(const struct expect *e,
                                    const struct record *r,
                                    const struct compare_part *part,
                                    struct finding *f),
                      struct finding *f)
{
    for (uint32_t step = from; step < to; step++) {
        for (uint32_t k = 0; k < e->c->ranks; k++) {
            struct compare_part part = {.rank = k, .step = step, .q = q};

            if (!walk_rank_parts(e, r, &part, check, f)) {
                return false;
            }
        }
    }
    return true;
}

static bool
walk_whole(const struct expect *e, const struct record *r,
           struct compare_part *part,
           bool (*check)(const struct expect *e, const struct record *r,
                         const struct compare_part *part, struct finding *f),
           struct finding *f)
{
    const struct fsdp_model *m = e->model;

    for (uint32_t p = 0; p < m->n_parameters; p++) {
        part->parameter = p;
        part->unit = e->unit_of_parameter[p];
        part->n = fsdp_numel(m, p);
        if (part->n == 0 || m->parameter_alias[p] >= 0 ||
            expect_is_ignored(e, p)) {
            continue;
        }
        if (!check(e, r, part, f)) {
            return false;
        }
    }
    return true;
}

static bool walk_gradients(
    const struct expect *e, const struct record *r, struct compare_part *part,
    bool (*check)(const struct expect *e, const struct record *r,
                  const struct compare_part *part, struct finding *f),
    struct finding *f)
{
    for (uint32_t p = 0; p < e->model->n_parameters; p++) {
        part->parameter = p;
        part->unit = e->unit_of_parameter[p];
        part->n = fsdp_numel(e->model, p);
        if (part->n == 0 || (e->has_gradient[p] >> part->microbatch & 1) == 0) {
            continue;
        }
        for (uint32_t j = 0; j < e->backwards[p]; j++) {
            part->base = j * part->n;
            if (!check(e, r, part, f)) {
                return false;
            }
        }
    }
    return true;
}

/* Every rank and microbatch of steps [from, to). */
static bool walk_microbatches(const struct expect *e, const struct record *r,
                              uint32_t from, uint32_t to, bool gradients,
                              bool (*check)(const struct expect *e,
                                            const struct record *r,
                                            const struct compare_part *part,
                                            struct finding *f),
                              struct finding *f)
{
    for (uint32_t step = from; step < to; step++) {
        for (uint32_t b = 0; b < e->c->microbatches; b++) {
            for (uint32_t k = 0; k < e->c->ranks; k++) {
                struct compare_part part = {
                    .rank = k, .step = step, .microbatch = b};

                if (compare_is_sampled(r, k) &&
                    !(gradients ? walk_gradients : walk_whole)(e, r, &part,
                                                               check, f)) {
                    return false;
                }
            }
        }
    }
    return true;
}

bool compare_whole(const struct expect *e, const struct record *r,
                   uint32_t from, uint32_t to,
                   bool (*check)(const struct expect *e, const struct record *r,
                                 const struct compare_part *part,
                                 struct finding *f),
                   struct finding *f)
{
    return walk_microbatches(e, r, from, to, false, check, f);
}

bool compare_gradients(
    const struct expect *e, const struct record *r, uint32_t from, uint32_t to,
    bool (*check)(const struct expect *e, const struct record *r,
                  const struct compare_part *part, struct finding *f),
    struct finding *f)
{
    return walk_microbatches(e, r, from, to, true, check, f);
}

static const float *values_of(const struct record_rank *rank, uint32_t stage,
                              const struct compare_part *part, uint64_t first,
                              uint64_t n)
{
    const struct record_tensor *t;

    if (!rank) {
        return NULL;
    }
    t = record_find(rank, stage, part->step, part->microbatch, part->parameter,
                    first);
    return !t || t->n != n ? NULL : t->data;
}

const float *compare_values(const struct record *r, uint32_t stage,
                            const struct compare_part *part)
{
    return values_of(compare_rank(r, part->rank), stage, part,
                     part->first + part->base, part->n);
}

const float *compare_values_in_whole(const struct expect *e,
                                     const struct record *r, uint32_t k,
                                     uint32_t stage,
                                     const struct compare_part *part)
{
    uint64_t numel = fsdp_numel(e->model, part->parameter);
    const float *whole =
        values_of(compare_rank(r, k), stage, part, part->base, numel);

    return !whole ? NULL : whole + part->first;
}

const float *compare_baseline(const struct expect *e, uint32_t stage,
                              const struct compare_part *part)
{
    if (!e->baseline) {
        return NULL;
    }
    return compare_values_in_whole(e, e->baseline, 0, stage, part);
}

bool compare_missing(const struct compare_part *part, uint32_t stage,
                     struct finding *f)
{
    struct finding at =
        finding_at_part(record_stage_name(stage), part->microbatch, part);

    at.element = (int64_t)part->first;
    return finding_count(f, at, 0, part->n,
                         "not recorded: elements from here on");
}

const uint32_t compare_stages[COMPARE_STAGES] = {RECORD_AFTER, RECORD_STATE0,
                                                 RECORD_STATE1};

uint32_t compare_n_stages(const struct expect *e)
{
    return e->c->optimizer == FSDP_OPTIMIZER_ADAMW      ? 3
           : e->c->optimizer == FSDP_OPTIMIZER_MOMENTUM ? 2
                                                        : 1;
}

uint32_t compare_n_stages_of(const struct expect *e,
                             const struct compare_part *part)
{
    return expect_is_trainable(expect_at(e, part->step), part->parameter)
               ? compare_n_stages(e)
               : 1;
}

bool compare_as_baseline(const struct expect *e, const struct record *r,
                         const struct compare_part *part, uint32_t stage,
                         struct finding *f)
{
    struct compare_part of = *part;

    of.any_nan = part->any_nan || compare_any_nan(e);
    of.any_zero = e->profile == EXPECT_OWN;
    return compare_equal(e, &of, stage, compare_values(r, stage, part),
                         compare_baseline(e, stage, part), f);
}

bool compare_all_as_baseline(const struct expect *e, const struct record *r,
                             const struct compare_part *part, struct finding *f)
{
    for (uint32_t k = 0; k < compare_n_stages_of(e, part); k++) {
        if (!compare_as_baseline(e, r, part, compare_stages[k], f)) {
            return false;
        }
    }
    return true;
}

bool compare_as_then(const struct expect *e, const struct record *r,
                     const struct compare_part *part, uint32_t stage,
                     uint32_t stage_then, uint32_t step_then, struct finding *f)
{
    struct compare_part then = *part;
    struct compare_part own = *part;

    then.step = step_then;
    own.own = true;
    return compare_equal(e, &own, stage, compare_values(r, stage, part),
                         compare_values(r, stage_then, &then), f);
}

bool compare_same_or_nan(float got, float want)
{
    return isnan(want) ? isnan(got) : fsdp_f32_bits(got) == fsdp_f32_bits(want);
}

bool compare_element(const struct expect *e, const struct compare_part *part,
                     uint32_t stage, uint64_t i, float got, float want,
                     struct finding *f)
{
    uint64_t chunk = e->unit[part->unit].chunk;
    uint64_t flat = expect_place(e, part->parameter, part->first + i);
    struct finding at;

    if ((part->own || want == want) &&
        fsdp_f32_bits(got) == fsdp_f32_bits(want)) {
        return true;
    }
    if (part->any_nan && compare_same_or_nan(got, want)) {
        return true;
    }
    if (part->any_zero && fpclassify(got) == FP_ZERO &&
        fpclassify(want) == FP_ZERO) {
        return true;
    }
    at = finding_at_part(record_stage_name(stage), part->microbatch, part);
    at.element = (int64_t)(part->first + i);
    at.flat = (int64_t)flat;
    if (chunk > 0) {
        at.shard = (int64_t)(flat / chunk);
        at.local = (int64_t)(flat % chunk);
    }
    return finding_bits(f, at, got, want,
                        want == want ? "differs in bits"
                                     : "the value to compare with is NaN");
}

bool compare_equal(const struct expect *e, const struct compare_part *part,
                   uint32_t stage, const float *got, const float *want,
                   struct finding *f)
{
    if (!got) {
        return compare_missing(part, stage, f);
    }
    if (!want) {
        return finding_missing(
            f,
            finding_at_part(record_stage_name(stage), part->microbatch, part),
            "the values to compare with are not recorded");
    }
    for (uint64_t i = 0; i < part->n; i++) {
        if (!compare_element(e, part, stage, i, got[i], want[i], f)) {
            return false;
        }
    }
    return true;
}

static bool before_is_baseline(const struct expect *e, const struct record *r,
                               const struct compare_part *part,
                               struct finding *f)
{
    return compare_equal(e, part, RECORD_BEFORE,
                         compare_values(r, RECORD_BEFORE, part),
                         compare_baseline(e, RECORD_BEFORE, part), f);
}

bool compare_starts_alike(const struct expect *e, const struct record *r,
                          uint32_t step)
{
    struct finding unused;

    return compare_parts(e, r, step, step + 1, before_is_baseline, &unused);
}

bool compare_replica(const struct expect *e, const struct record *r,
                     const struct compare_part *part, uint32_t stage,
                     struct finding *f)
{
    struct compare_part first = *part;

    first.rank = part->rank % e->shards;
    return compare_equal(e, part, stage, compare_values(r, stage, part),
                         compare_values(r, stage, &first), f);
}

bool compare_gathered(const struct expect *e, const struct record *r,
                      const struct compare_part *part, uint32_t stage,
                      const float *want, struct finding *f)
{
    uint32_t group = part->rank / e->shards * e->shards;
    const uint32_t dtype = stage == RECORD_UNSHARDED
                               ? e->unit[part->unit].dtype.param
                               : FSDP_DTYPE_F32;
    float *rounded = NULL;
    bool holds = true;

    if (want && dtype != FSDP_DTYPE_F32) {
        rounded = calloc(part->n + 1, sizeof(*rounded));
        for (uint64_t i = 0; rounded && i < part->n; i++) {
            rounded[i] = fsdp_round(dtype, want[i]);
        }
        want = rounded;
    }
    for (uint32_t k = group; k < group + e->shards; k++) {
        struct compare_part seen = *part;

        seen.rank = k;
        holds = holds &&
                ((record_is_sampled(stage) && !compare_is_sampled(r, k)) ||
                 compare_equal(e, &seen, stage,
                               compare_values_in_whole(e, r, k, stage, &seen),
                               want, f));
    }
    free(rounded);
    return holds;
}

struct record_tensor *compare_find_tensor(
    const struct expect *e, struct record *r,
    bool (*is)(const struct expect *e, const struct record_tensor *t))
{
    for (uint32_t k = r->n_ranks; k > 0; k--) {
        struct record_rank *rank = compare_rank_to_spoil(r, k - 1);

        for (uint32_t i = 0; rank && i < rank->n_tensors; i++) {
            struct record_tensor *t = &rank->tensor[i];

            if (t->n > 0 && t->data && t->parameter < e->model->n_parameters &&
                is(e, t)) {
                return t;
            }
        }
    }
    return NULL;
}

bool compare_spoil_value(struct record_tensor *t)
{
    if (t) {
        t->data[0] =
            t->data[0] < 0.0f || t->data[0] > 0.0f ? -2.0f * t->data[0] : 1.0f;
    }
    return t != NULL;
}

struct record_tensor *compare_tensor_to_spoil(struct record *r, uint32_t stage,
                                              uint32_t step)
{
    for (uint32_t k = r->n_ranks; k > 0; k--) {
        struct record_rank *rank = compare_rank_to_spoil(r, k - 1);

        for (uint32_t i = 0; rank && i < rank->n_tensors; i++) {
            struct record_tensor *t = &rank->tensor[i];

            if (t->stage == stage && t->step >= step && t->n > 0 && t->data) {
                return t;
            }
        }
    }
    return NULL;
}

static bool spoil_tensor(struct record_tensor *t)
{
    uint32_t bits;

    if (!t) {
        return false;
    }
    memcpy(&bits, t->data, sizeof(bits));
    bits = isnan(t->data[0]) ? 0 : bits ^ 1u;
    memcpy(t->data, &bits, sizeof(bits));
    return true;
}

bool compare_spoil_stage(struct record *r, uint32_t stage, uint32_t step)
{
    return spoil_tensor(compare_tensor_to_spoil(r, stage, step));
}

bool compare_spoil_step(struct record *r, uint32_t stage, uint32_t step)
{
    for (uint32_t k = r->n_ranks; k > 0; k--) {
        struct record_rank *rank = compare_rank_to_spoil(r, k - 1);

        for (uint32_t i = 0; rank && i < rank->n_tensors; i++) {
            struct record_tensor *t = &rank->tensor[i];

            if (t->stage == stage && t->step == step && t->n > 0 && t->data) {
                return spoil_tensor(t);
            }
        }
    }
    return false;
}

bool compare_spoil_trained(const struct expect *e, struct record *r,
                           uint32_t stage, uint32_t step)
{
    for (uint32_t k = r->n_ranks; k > 0; k--) {
        struct record_rank *rank = compare_rank_to_spoil(r, k - 1);

        for (uint32_t i = 0; rank && i < rank->n_tensors; i++) {
            struct record_tensor *t = &rank->tensor[i];

            if (t->stage == stage && t->step >= step && t->n > 0 && t->data &&
                t->parameter < e->model->n_parameters &&
                expect_is_trainable(e, t->parameter)) {
                return spoil_tensor(t);
            }
        }
    }
    return compare_spoil_stage(r, stage, step);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout_requirements.c - which elements a rank owns, and what they are at
 * first.
 */
#include "requirements/families.h"

#include "judge/compare/compare_checks.h"

#include <inttypes.h>
#include <stdlib.h>

/*
 * layout.no-padding: padding fills a flat parameter, or the rows of one, to
 * equal shards and belongs to no parameter.
 */
static bool no_padding_of_rank(const struct expect *e,
                               const struct record_rank *rank, uint32_t k,
                               struct finding *f)
{
    for (uint32_t i = 0; rank->tensor && i < rank->n_tensors; i++) {
        const struct record_tensor *t = &rank->tensor[i];
        struct finding at =
            finding_at(record_stage_name(t->stage), t->step, t->microbatch, k);
        uint64_t numel;

        if (t->stage >= RECORD_BUFFER && t->stage <= RECORD_BUFFER_LOADED) {
            continue; /* a buffer: buffer.whole is about those */
        }
        at.parameter = t->parameter;
        if (t->parameter >= e->model->n_parameters) {
            return finding_count(f, at, t->parameter, e->model->n_parameters,
                                 "no such parameter; the model has so many");
        }
        numel = fsdp_numel(e->model, t->parameter);
        if (t->stage == RECORD_LOCAL_GRADIENT) {
            continue; /* a whole tensor, as the model wrote it */
        }
        if (t->first > numel || t->n > numel - t->first) {
            at.element = (int64_t)numel;
            return finding_count(
                f, at, t->n, t->first > numel ? 0 : numel - t->first,
                "elements of a part that reaches beyond its parameter");
        }
    }
    return true;
}

static bool no_padding_spoil(const struct expect *e, struct record *r)
{
    struct record_tensor *t = compare_tensor_to_spoil(r, RECORD_INITIAL, 0);

    if (t) {
        t->first = fsdp_numel(e->model, t->parameter);
    }
    return t != NULL;
}

/*
 * layout.whole-rows: a parameter that is sharded by rows is cut only between
 * rows: an optimizer that works on matrices, or a checkpoint of slices, then
 * finds where a row begins without another rank.
 */
static bool whole_rows_applies(const struct expect *e)
{
    return compare_case_initial(e) && e->packs;
}

/* Elements of a row of dimension 0; 1 where there are no rows. */
static uint64_t row_of(const struct expect *e, uint32_t p)
{
    uint64_t row = 1;

    for (uint32_t d = 1; d < e->model->parameter_n_dims[p]; d++) {
        row *= e->model->parameter_shape[p][d];
    }
    return row > 0 ? row : 1;
}

static bool whole_rows_of_rank(const struct expect *e,
                               const struct record_rank *rank, uint32_t k,
                               struct finding *f)
{
    for (uint32_t i = 0; rank->tensor && i < rank->n_tensors; i++) {
        const struct record_tensor *t = &rank->tensor[i];
        struct finding at = finding_at("initial", 0, -1, k);
        uint64_t row;

        if (t->stage != RECORD_INITIAL ||
            t->parameter >= e->model->n_parameters) {
            continue;
        }
        row = row_of(e, t->parameter);
        at.parameter = t->parameter;
        if (t->first % row != 0) {
            at.element = (int64_t)t->first;
            return finding_count(f, at, t->first % row, 0,
                                 "elements into its row a part begins");
        }
        if (t->n % row != 0) {
            at.element = (int64_t)t->first;
            return finding_count(f, at, t->n % row, 0,
                                 "elements of a row that a part has of its "
                                 "last one, and not the rest");
        }
    }
    return true;
}

static bool has_rows(const struct expect *e, const struct record_tensor *t)
{
    return t->stage == RECORD_INITIAL && row_of(e, t->parameter) > 1;
}

static bool whole_rows_spoil(const struct expect *e, struct record *r)
{
    struct record_tensor *t = compare_find_tensor(e, r, has_rows);

    if (t) {
        t->n--;
    }
    return t != NULL;
}

/*
 * layout.covers-once: the shards are the parameter, cut up: nothing twice,
 * nothing lost.
 */

/* Counts the owners of each element of parameter p in ranks [from, from + S);
 * a part that does not fit is layout.no-padding's to report. */
static void count_owners(const struct expect *e, const struct record *r,
                         uint32_t from, uint32_t p, uint64_t numel,
                         uint8_t *owners)
{
    for (uint32_t k = from; k < from + e->shards; k++) {
        const struct record_rank *rank = compare_rank(r, k);
        uint32_t i = 0;
        uint32_t n = 0;

        if (rank && rank->tensor) {
            n = record_parts(rank, RECORD_INITIAL, 0, 0, p, &i);
        }
        for (; n > 0 && i < rank->n_tensors; n--, i++) {
            const struct record_tensor *t = &rank->tensor[i];

            for (uint64_t x = t->first; x < numel && x - t->first < t->n; x++) {
                owners[x] = (uint8_t)(owners[x] + (owners[x] < 2));
            }
        }
    }
}

static bool covers_parameter_once(const struct expect *e,
                                  const struct record *r, uint32_t from,
                                  uint32_t p, struct finding *f)
{
    uint64_t numel = fsdp_numel(e->model, p);
    uint64_t x = 0;
    uint8_t *owners = calloc(numel > 0 ? numel : 1, 1);
    struct finding at = finding_at("initial", 0, -1, -1);
    bool once;

    at.parameter = p;
    if (!owners) {
        return finding_text(f, at, "the judge has no memory to count owners");
    }
    count_owners(e, r, from, p, numel, owners);
    while (x < numel && owners[x] == 1) {
        x++;
    }
    once = x == numel;
    if (!once) {
        at.element = (int64_t)x;
        at.unit = e->unit_of_parameter[p];
        finding_count(f, at, owners[x], 1,
                      owners[x] == 0 ? "owners of this element: none"
                                     : "owners of this element: more than one");
    }
    free(owners);
    return once;
}

static bool covers_once_holds(const struct expect *e, const struct record *r,
                              struct finding *f)
{
    for (uint32_t from = 0; from < e->c->ranks; from += e->shards) {
        for (uint32_t p = 0; p < e->model->n_parameters; p++) {
            if (e->model->parameter_alias[p] < 0 && !expect_is_ignored(e, p) &&
                !covers_parameter_once(e, r, from, p, f)) {
                return false;
            }
        }
    }
    return true;
}

static bool shorten_first_part(const struct expect *e, struct record *r)
{
    struct record_tensor *t = compare_tensor_to_spoil(r, RECORD_INITIAL, 0);

    (void)e;
    if (t) {
        t->n--;
    }
    return t != NULL;
}

/*
 * layout.chunk-rule: which elements a shard holds is specified, since folds and
 * checkpoints depend on it.
 */

/* The part of the parameter that the rank shows: the one that begins in the
 * right place, else its first. */
static const struct record_tensor *shown(const struct record_rank *rank,
                                         const struct compare_part *part)
{
    const struct record_tensor *found = NULL;

    for (uint32_t i = 0; rank && rank->tensor && i < rank->n_tensors; i++) {
        const struct record_tensor *t = &rank->tensor[i];

        if (t->stage != RECORD_INITIAL || t->parameter != part->parameter) {
            continue;
        }
        if (!found ||
            (t->first == part->first && found->first != part->first)) {
            found = t;
        }
    }
    return found;
}

static bool part_differs(const struct expect *e, const struct record *r,
                         const struct compare_part *part, struct finding *f)
{
    const struct record_tensor *t = shown(compare_rank(r, part->rank), part);
    const char *name = compare_parameter_name(e, part->parameter);
    struct finding at = finding_at("initial", 0, -1, part->rank);

    at.parameter = part->parameter;
    at.element = (int64_t)part->first;
    if (!t) {
        return finding_note(f, at,
                            "rank %" PRIu32 " reports nothing of %.48s, should "
                            "own [%" PRIu64 ",%" PRIu64 ")",
                            part->rank, name, part->first,
                            part->first + part->n);
    }
    if (t->first == part->first && t->n == part->n) {
        return compare_missing(part, RECORD_INITIAL, f);
    }
    return finding_note(f, at,
                        "rank %" PRIu32 " reports [%" PRIu64 ",%" PRIu64
                        ") of %.48s, should own [%" PRIu64 ",%" PRIu64 ")",
                        part->rank, t->first, t->first + t->n, name,
                        part->first, part->first + part->n);
}

static bool chunk_rule_of_part(const struct expect *e, const struct record *r,
                               const struct compare_part *part,
                               struct finding *f)
{
    return compare_values(r, RECORD_INITIAL, part) ||
           part_differs(e, r, part, f);
}

static bool is_owned(const struct expect_part *part, uint32_t n,
                     const struct record_tensor *t)
{
    for (uint32_t i = 0; i < n; i++) {
        if (part[i].parameter == t->parameter && part[i].first == t->first &&
            part[i].n == t->n) {
            return true;
        }
    }
    return false;
}

/* All wanted parts are there; the rank must have no others. */
static bool owns_no_more(const struct expect *e, const struct record_rank *rank,
                         uint32_t k, struct finding *f)
{
    const struct record_tensor *other = NULL;
    struct expect_part *part = NULL;
    uint32_t n_parts = 0;
    uint32_t got = 0;
    uint32_t want = 0;

    if (expect_parts(e, k % e->shards, &part, &n_parts) != FSDP_OK) {
        return finding_text(f, finding_at("initial", 0, -1, k),
                            "the judge has no memory for this rank's parts");
    }
    for (uint32_t i = 0; i < n_parts; i++) {
        want += part[i].n > 0;
    }
    for (uint32_t i = 0; rank->tensor && i < rank->n_tensors; i++) {
        const struct record_tensor *t = &rank->tensor[i];

        if (t->stage == RECORD_INITIAL && t->n > 0) {
            got++;
            other = is_owned(part, n_parts, t) ? other : t;
        }
    }
    free(part);
    if (got != want && other) {
        return finding_note(f, finding_at("initial", 0, -1, k),
                            "rank %" PRIu32 " also reports [%" PRIu64
                            ",%" PRIu64 ") of %.48s, which it should not own",
                            k, other->first, other->first + other->n,
                            compare_parameter_name(e, other->parameter));
    }
    return got == want ||
           finding_count(f, finding_at("initial", 0, -1, k), got, want,
                         "parts of parameters that this rank owns");
}

static bool chunk_rule_holds(const struct expect *e, const struct record *r,
                             struct finding *f)
{
    return compare_parts(e, r, 0, 1, chunk_rule_of_part, f) &&
           compare_ranks(e, r, owns_no_more, f);
}

/*
 * layout.empty-shards: a rank without an element still takes part in every
 * step.
 */
static bool owns_nothing(const struct expect *e, uint32_t shard)
{
    struct expect_part *part = NULL;
    uint32_t n = 0;
    bool none = expect_parts(e, shard, &part, &n) == FSDP_OK && n == 0;

    free(part);
    return none;
}

/* The last shard is the first to be empty. */
static bool empty_shards_applies(const struct expect *e)
{
    return compare_case_staged(e) && owns_nothing(e, e->shards - 1);
}

static bool is_owned_stage(uint32_t stage)
{
    return stage != RECORD_UNSHARDED && stage != RECORD_LOCAL_GRADIENT &&
           stage != RECORD_SUMMONED;
}

static bool empty_shards_of_rank(const struct expect *e,
                                 const struct record_rank *rank, uint32_t k,
                                 struct finding *f)
{
    if (!owns_nothing(e, k % e->shards)) {
        return true;
    }
    for (uint32_t i = 0; rank->tensor && i < rank->n_tensors; i++) {
        const struct record_tensor *t = &rank->tensor[i];

        if (t->n > 0 && is_owned_stage(t->stage)) {
            return finding_count(
                f, finding_at(record_stage_name(t->stage), t->step, -1, k),
                t->n, 0, "elements of a rank whose shards are empty");
        }
    }
    return rank->n_losses == compare_n_losses(e) ||
           finding_count(f, finding_at("run", -1, -1, k), rank->n_losses,
                         compare_n_losses(e),
                         "losses of a rank whose shards are empty");
}

static bool empty_shards_spoil(const struct expect *e, struct record_rank *rank)
{
    (void)e;
    if (rank->n_losses == 0) {
        return false;
    }
    rank->n_losses--;
    return true;
}

/* layout.replicas-equal: replicas that start apart never meet again. */
static bool has_replicas(const struct expect *e)
{
    return compare_case_initial(e) && e->replicas > 1;
}

/*
 * layout.initial-values: parameters start as the model says, for every world
 * and wrap.
 */
static bool initial_values_of_part(const struct expect *e,
                                   const struct record *r,
                                   const struct compare_part *part,
                                   struct finding *f)
{
    const struct fsdp_model *m = e->model;
    float *want = calloc(part->n, sizeof(*want));
    bool well;

    if (!want || m->initial(m->context, part->parameter, part->first, part->n,
                            want) != FSDP_OK) {
        free(want);
        return finding_text(f, finding_at("initial", 0, -1, part->rank),
                            "the judge cannot make the initial values");
    }
    well = compare_equal(e, part, RECORD_INITIAL,
                         compare_values(r, RECORD_INITIAL, part), want, f);
    free(want);
    return well;
}

const struct requirement layout_requirements[] = {
    {.since = "1.0",
     .must = 1,
     .level = LEVEL_LAYOUT,
     .applies = compare_case_initial},
    {.id = "layout.no-padding",
     .text = "No part that a rank shows reaches beyond the end of its "
             "parameter.",
     .needs = "run.completes stream.no-race",
     .spoil = no_padding_spoil,
     .check = &check_each_rank,
     .rank = {no_padding_of_rank}},
    {.id = "layout.whole-rows",
     .text = "In the per-parameter layout every part that a rank owns begins "
             "and ends with a row of dimension 0.",
     .needs = "layout.no-padding",
     .applies = whole_rows_applies,
     .spoil = whole_rows_spoil,
     .check = &check_each_rank,
     .rank = {whole_rows_of_rank}},
    {.id = "layout.covers-once",
     .text = "In each replica every element of every parameter is owned by "
             "exactly one rank.",
     .needs = "layout.no-padding layout.whole-rows",
     .holds = covers_once_holds,
     .spoil = shorten_first_part},
    {.id = "layout.chunk-rule",
     .text = "Rank s of the shard dimension owns the s-th of S equal parts of "
             "each padded flat parameter, or, per parameter, the s-th ceil(d_0 "
             "/ S) rows of each, no more and no less.",
     .needs = "layout.covers-once",
     .holds = chunk_rule_holds,
     .spoil = shorten_first_part},
    {.id = "layout.empty-shards",
     .text = "A rank whose shards are all padding owns nothing at any stage "
             "and still completes every microbatch.",
     .needs = "layout.chunk-rule run.shows-every-step",
     .applies = empty_shards_applies,
     .check = &check_each_rank,
     .rank = {empty_shards_of_rank, empty_shards_spoil}},
    {.id = "layout.replicas-equal",
     .text = "All replicas start with identical shards.",
     .needs = "layout.chunk-rule",
     .applies = has_replicas,
     .check = &check_each_part,
     .part = {check_replicas, RECORD_INITIAL, STEPS_FIRST}},
    {.id = "layout.initial-values",
     .text = "After sharding each rank holds the initial values of the "
             "elements it owns, bit for bit.",
     .needs = "layout.chunk-rule layout.replicas-equal",
     .check = &check_each_part,
     .part = {initial_values_of_part, RECORD_INITIAL, STEPS_FIRST}},
    {0},
};

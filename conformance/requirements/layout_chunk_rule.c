/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout_chunk_rule.c - which elements a shard holds is specified, since folds
 * and checkpoints depend on it.
 */
#include "judge/compare/compare.h"

#include <inttypes.h>
#include <stdlib.h>

/* What the rank shows of the parameter: the part that begins where it should,
 * else its first. */
static const struct record_tensor *shown(const struct record_rank *rank,
                                         const struct compare_part *part)
{
    const struct record_tensor *found = NULL;

    for (uint32_t i = 0;
         rank != NULL && rank->tensor != NULL && i < rank->n_tensors; i++) {
        const struct record_tensor *t = &rank->tensor[i];

        if (t->stage != RECORD_INITIAL || t->parameter != part->parameter) {
            continue;
        }
        if (found == NULL ||
            (t->first == part->first && found->first != part->first)) {
            found = t;
        }
    }
    return found;
}

static bool differs(const struct expect *e, const struct record *r,
                    const struct compare_part *part, struct finding *f)
{
    const struct record_tensor *t = shown(compare_rank(r, part->rank), part);
    const char *name = compare_parameter_name(e, part->parameter);
    struct finding at = finding_at("initial", 0, -1, part->rank);

    at.parameter = part->parameter;
    at.element = (int64_t)part->first;
    if (t == NULL) {
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

static bool check(const struct expect *e, const struct record *r,
                  const struct compare_part *part, struct finding *f)
{
    return compare_values(r, RECORD_INITIAL, part) != NULL ||
           differs(e, r, part, f);
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

/* All wanted parts are there; now none may be there besides. */
static bool check_number(const struct expect *e, const struct record_rank *rank,
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
    for (uint32_t i = 0; rank->tensor != NULL && i < rank->n_tensors; i++) {
        const struct record_tensor *t = &rank->tensor[i];

        if (t->stage == RECORD_INITIAL && t->n > 0) {
            got++;
            other = is_owned(part, n_parts, t) ? other : t;
        }
    }
    free(part);
    if (got != want && other != NULL) {
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

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    return compare_parts(e, r, 0, 1, check, f) &&
           compare_ranks(e, r, check_number, f);
}

static bool spoil(const struct expect *e, struct record *r)
{
    struct record_tensor *t = compare_tensor_to_spoil(r, RECORD_INITIAL, 0);

    (void)e;
    if (t == NULL) {
        return false;
    }
    t->n--;
    return true;
}

REQUIREMENT(layout_chunk_rule) = {
    .id = "layout.chunk-rule",
    .text = "Rank s of the shard dimension owns the s-th of S equal "
            "parts of each padded flat parameter, or, per parameter, the "
            "s-th ceil(d_0 / S) rows of each, no more and no less.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_LAYOUT,
    .needs = "layout.covers-once",
    .applies = compare_case_staged,
    .holds = holds,
    .spoil = spoil,
};

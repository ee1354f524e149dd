/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_peak_bound.c - the headline of sharding, M/K plus the largest unit,
 * where its premises hold: units are resharded after forward, their windows do
 * not overlap, nothing is prefetched, and there is more than one shard.
 */
#include "judge/compare/compare.h"

static bool is_forward(uint32_t point)
{
    return point == FSDP_PRE_FORWARD || point == FSDP_POST_FORWARD;
}

/* The phase (model.h) that begins at point i: where it ends. */
static uint32_t phase_end(const struct fsdp_sequence *s, uint32_t i)
{
    bool forward = is_forward(s->point[i]);

    while (i < s->n && is_forward(s->point[i]) == forward) {
        i++;
    }
    return i;
}

/* Whether a unit's window is left for another unit and entered again, or has
 * another one inside it, between points `from` and `to`. */
static bool overlaps(const struct expect *e, const struct fsdp_sequence *s,
                     uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        uint32_t unit = e->units->unit_of_module[s->module[i]];
        bool left = false;

        for (uint32_t j = i + 1; unit != FSDP_NO_UNIT && j < to; j++) {
            uint32_t next = e->units->unit_of_module[s->module[j]];

            if (next == unit && left) {
                return true;
            }
            left = left || (next != FSDP_NO_UNIT && next != unit);
        }
    }
    return false;
}

static bool applies(const struct expect *e)
{
    const struct fsdp_sequence *s = e->model->sequence[FSDP_SEQUENCE_TRAIN];

    if (!compare_case_strict(e) || e->shards < 2 ||
        e->units->reshard_after_forward != NULL ||
        e->c->scenario == CASE_SUMMON ||
        e->options.reshard_after_forward == 0 || e->options.keep_root != 0) {
        return false;
    }
    for (uint32_t i = 0, end; i < s->n; i = end) {
        end = phase_end(s, i);
        if (overlaps(e, s, i, end)) {
            return false;
        }
    }
    return true;
}

static bool check(const struct expect *e, const struct record_rank *rank,
                  uint32_t k, struct finding *f)
{
    uint64_t bound = 4 * (e->resting + e->largest);
    uint64_t got = rank->memory.peak_parameters;

    return got <= bound ||
           finding_peak(f, finding_at("parameters", -1, -1, k), got, bound,
                        "the bound is M/K + the largest unit", &rank->memory);
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    return compare_ranks(e, r, check, f);
}

static bool spoil(const struct expect *e, struct record *r)
{
    struct record_rank *rank = compare_rank_to_spoil(r, r->n_ranks - 1);

    if (rank == NULL) {
        return false;
    }
    rank->memory.peak_parameters = 4 * (e->resting + e->largest) + 1;
    return true;
}

REQUIREMENT(memory_peak_bound) = {
    .id = "memory.peak-bound",
    .text = "A rank never holds more parameters than its shards and the "
            "largest unit as it is unsharded: padded, or by rows.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_MEMORY,
    .needs = "memory.peak-parameters",
    .claim = "strict-memory",
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};

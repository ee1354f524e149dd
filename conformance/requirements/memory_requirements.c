/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_requirements.c - live and allocated bytes, at rest and over a run.
 */
#include "requirements/families.h"

#include "judge/compare/compare_checks.h"
#include "judge/compare/compare_memory.h"

#include <stddef.h>
#include <string.h>

/* Whether all that rests does so on the device; offload_requirements.c is about
 * other cases. */
static bool is_resident(const struct expect *e)
{
    return compare_case_trains(e) && !expect_is_offloaded(e);
}

static bool is_one_shard(const struct expect *e)
{
    for (uint32_t u = 0; u < e->units->n_units; u++) {
        if (e->unit[u].shard_on_host) {
            return false; /* what compute sees is a copy */
        }
    }
    return compare_case_trains(e) && e->shards == 1 &&
           e->c->precision == CASE_F32;
}

/*
 * memory.rest-after-shard: at rest a rank holds its shards and optimizer
 * states, 1/S of each, and nothing else.
 */
static bool rest_after_shard_of_rank(const struct expect *e,
                                     const struct record_rank *rank, uint32_t k,
                                     struct finding *f)
{
    return compare_rest(e, &rank->memory.after_shard,
                        finding_at("memory", -1, -1, k), f);
}

/*
 * memory.rest-after-step: bytes that a step leaves behind add to the peak of
 * the next.
 */
static bool rest_after_step_of_rank(const struct expect *e,
                                    const struct record_rank *rank, uint32_t k,
                                    struct finding *f)
{
    for (uint32_t t = 0; t < e->c->steps; t++) {
        struct finding at = finding_at("memory", t, -1, k);

        if (!rank->memory.after_step || t >= rank->n_steps) {
            return finding_text(f, at,
                                "memory after this step is not recorded");
        }
        if (!compare_rest(e, &rank->memory.after_step[t], at, f)) {
            return false;
        }
    }
    return true;
}

static bool rest_after_step_spoil(const struct expect *e,
                                  struct record_rank *rank)
{
    (void)e;
    if (!rank->memory.after_step || rank->n_steps == 0) {
        return false;
    }
    rank->memory.after_step[rank->n_steps - 1].live[FSDP_GRAD_SHARD]++;
    return true;
}

/*
 * memory.no-activations-by-engine: activations are not counted against an
 * engine, so none of its own bytes may go by that name.
 */
static bool no_activations_by_engine_of_rank(const struct expect *e,
                                             const struct record_rank *rank,
                                             uint32_t k, struct finding *f)
{
    for (uint32_t t = 0; t <= e->c->steps; t++) {
        const struct record_rest *got = &rank->memory.after_shard;

        if (t > 0 && (!rank->memory.after_step || t > rank->n_steps)) {
            return finding_text(f, finding_at("memory", t - 1, -1, k),
                                "memory after this step is not recorded");
        }
        if (t > 0) {
            got = &rank->memory.after_step[t - 1];
        }
        if (got->live[FSDP_ACTIVATION] != 0) {
            return finding_bytes(
                f, finding_at("activation", (int64_t)t - 1, -1, k),
                got->live[FSDP_ACTIVATION], 0, "live outside a pass");
        }
    }
    return true;
}

/* memory.steps-do-not-grow: memory that grows with each step ends a long
 * run. */
static bool steps_do_not_grow_applies(const struct expect *e)
{
    return compare_case_trains(e) && e->c->steps > 2;
}

static bool steps_do_not_grow_of_rank(const struct expect *e,
                                      const struct record_rank *rank,
                                      uint32_t k, struct finding *f)
{
    const uint64_t *n = rank->memory.allocations;

    for (uint32_t t = 2; t < e->c->steps; t++) {
        struct finding at = finding_at("memory", t, -1, k);

        if (!n || t >= rank->n_steps) {
            return finding_text(
                f, at, "the allocations of this step are not recorded");
        }
        if (case_resumes(e->c) && t == e->c->steps / 2) {
            continue; /* another life begins */
        }
        if (n[t] > n[1]) {
            return finding_count(f, at, n[t], n[1],
                                 "allocations in this step; the second step's");
        }
    }
    return true;
}

static bool steps_do_not_grow_spoil(const struct expect *e,
                                    struct record_rank *rank)
{
    (void)e;
    if (!rank->memory.allocations || rank->n_steps < 3) {
        return false;
    }
    rank->memory.allocations[rank->n_steps - 1] =
        rank->memory.allocations[1] + 1;
    return true;
}

/*
 * memory.process-growth: an engine that maps memory behind the device is seen
 * from outside.
 */

/* For stacks, the C library, the batch, the communicator's buffers, and a
 * device's own workspace (the packed panels of a matrix product, say). */
enum {
    SLACK_BYTES = 5 << 20
};

/* Only a large model stands out from the slack. */
static bool process_growth_applies(const struct expect *e)
{
    return compare_case_trains(e) && strcmp(e->c->workload, "linear") == 0 &&
           strcmp(e->c->size, "large") == 0;
}

static uint64_t growth_bound(const struct record_memory *m)
{
    return m->peak_storage + m->peak[FSDP_ACTIVATION] + SLACK_BYTES;
}

static bool process_growth_of_rank(const struct expect *e,
                                   const struct record_rank *rank, uint32_t k,
                                   struct finding *f)
{
    const struct record_memory *m = &rank->memory;

    (void)e;
    return m->process_growth <= growth_bound(m) ||
           finding_bytes(
               f, finding_at("process", -1, -1, k), m->process_growth,
               growth_bound(m),
               "grown at peak; recorded storage, activations and slack");
}

/* Only the local world measures processes. */
static bool process_growth_holds(const struct expect *e, const struct record *r,
                                 struct finding *f)
{
    return strcmp(r->world, "local") != 0 ||
           compare_ranks(e, r, process_growth_of_rank, f);
}

static bool process_growth_spoil(const struct expect *e, struct record *r)
{
    struct record_rank *rank = compare_rank_to_spoil(r, r->n_ranks - 1);

    (void)e;
    if (!rank || strcmp(r->world, "local") != 0) {
        return false;
    }
    rank->memory.process_growth = growth_bound(&rank->memory) + 1;
    return true;
}

/*
 * memory.live-within-storage: this holds at every moment, and so at the peak.
 */
static bool live_within_storage_of_rank(const struct expect *e,
                                        const struct record_rank *rank,
                                        uint32_t k, struct finding *f)
{
    const struct record_memory *m = &rank->memory;
    const struct finding at = finding_at("memory", -1, -1, k);

    (void)e;
    if (m->peak_live_over_storage != 0) {
        return finding_bytes(f, at, m->peak_live_over_storage, 0,
                             "live beyond what is allocated");
    }
    return m->peak_engine <= m->peak_storage ||
           finding_bytes(f, at, m->peak_engine, m->peak_storage,
                         "live at the peak; the most that was allocated");
}

/*
 * memory.checkpoint-bound: a model that could be trained can be saved and
 * loaded: neither gathers it.
 */
/* The most that a save may add: a unit, or, where everything is gathered, a
 * tensor. */
static uint64_t save_bound(const struct expect *e)
{
    uint64_t most = 0;

    if (e->c->scenario != CASE_RESUME_FULL) {
        return e->largest * sizeof(float);
    }
    for (uint32_t p = 0; p < e->model->n_parameters; p++) {
        uint64_t numel = fsdp_numel(e->model, p);
        most = numel > most ? numel : most;
    }
    return most * sizeof(float);
}

static bool within_above_rest(const struct expect *e,
                              const struct record_rank *rank, uint32_t k,
                              const char *name, uint64_t bound,
                              struct finding *f)
{
    const struct record_answer *a = compare_find_answer(rank, name);
    struct finding at = finding_at("memory", -1, -1, k);

    (void)e;
    if (!a || a->status < 0) {
        return finding_text(f, at, "the bytes above rest are not recorded");
    }
    return (uint64_t)a->status <= bound ||
           finding_bytes(f, at, (uint64_t)a->status, bound, name);
}

static bool checkpoint_bound_of_rank(const struct expect *e,
                                     const struct record_rank *rank, uint32_t k,
                                     struct finding *f)
{
    bool saves = e->c->scenario <= CASE_RESUME_LOCAL;

    return (!saves || within_above_rest(e, rank, k, "save-above-rest",
                                        save_bound(e), f)) &&
           within_above_rest(e, rank, k, "load-above-rest",
                             e->largest * sizeof(float), f);
}

static bool checkpoint_bound_spoil(const struct expect *e, struct record *r)
{
    struct record_rank *rank = compare_rank_to_spoil(r, r->n_ranks - 1);
    struct record_answer *a = compare_find_answer(rank, "load-above-rest");

    if (!a || e->largest * sizeof(float) >= INT32_MAX) {
        return false;
    }
    a->status = (int32_t)(e->largest * sizeof(float)) + 1;
    return true;
}

const struct requirement memory_requirements[] = {
    {.since = "1.0", .must = 1, .level = LEVEL_MEMORY},
    /* A live range lies inside one allocation and overlaps no other; else
     * its bytes cannot be counted. */
    {.id = "memory.ranges-valid",
     .text = "No range is declared live outside an allocation, over another "
             "one, or freed while live.",
     .needs = "run.completes",
     .applies = compare_case_trains,
     .check = &check_zero,
     .zero = {offsetof(struct record_memory, bad_ranges), FINDING_COUNT, -1,
              "memory",
              "live ranges outside an allocation, "
              "overlapping, or freed while live"}},
    /* Nothing can be live where nothing was allocated. */
    {.id = "memory.live-within-storage",
     .text = "Live bytes never exceed the storage that was allocated for them.",
     .needs = "memory.ranges-valid",
     .applies = compare_case_trains,
     .check = &check_each_rank,
     .rank = {live_within_storage_of_rank,
              .raises = COMPARE_OF_RANK(memory.peak_live_over_storage)}},
    /* With nothing to gather an unsharded copy would be a second model. */
    {.id = "memory.single-rank",
     .text = "Where the shard degree is 1 a parameter is never held twice.",
     .needs = "memory.ranges-valid",
     .applies = is_one_shard,
     .check = &check_zero,
     .zero = {offsetof(struct record_memory, peak[FSDP_PARAM_FULL]),
              FINDING_BYTES, -1, "unsharded parameter",
              "a copy that is not needed"}},
    {.id = "memory.rest-after-shard",
     .text = "After sharding the live bytes of each kind are those of the "
             "shards and states, to the byte.",
     .needs = "memory.ranges-valid",
     .applies = is_resident,
     .check = &check_each_rank,
     .rank = {rest_after_shard_of_rank,
              .raises =
                  COMPARE_OF_RANK(memory.after_shard.live[FSDP_PARAM_SHARD])}},
    {.id = "memory.rest-after-step",
     .text = "After every step and zero_grad the live bytes of each kind are "
             "back at rest, to the byte.",
     .needs = "memory.rest-after-shard run.shows-every-step",
     .applies = is_resident,
     .check = &check_each_rank,
     .rank = {rest_after_step_of_rank, rest_after_step_spoil}},
    {.id = "memory.no-activations-by-engine",
     .text = "Outside a pass no byte is live as an activation.",
     .needs = "memory.ranges-valid run.shows-every-step",
     .applies = compare_case_trains,
     .check = &check_each_rank,
     .rank = {no_activations_by_engine_of_rank,
              .raises =
                  COMPARE_OF_RANK(memory.after_shard.live[FSDP_ACTIVATION])}},
    {.id = "memory.steps-do-not-grow",
     .text = "After the second step no step allocates more often than the "
             "second.",
     .should = true,
     .needs = "run.shows-every-step memory.rest-after-step",
     .applies = steps_do_not_grow_applies,
     .check = &check_each_rank,
     .rank = {steps_do_not_grow_of_rank, steps_do_not_grow_spoil}},
    {.id = "memory.process-growth",
     .text = "In a world of processes none grows by more than the recorded "
             "storage, activations and a fixed slack.",
     .needs = "memory.live-within-storage",
     .applies = process_growth_applies,
     .holds = process_growth_holds,
     .spoil = process_growth_spoil},
    {.id = "memory.checkpoint-bound",
     .text = "A save or a load has at no moment more than the largest unit "
             "live above what rests; gathering for a full save, the largest "
             "tensor.",
     .needs = "memory.rest-after-shard",
     .claim = "load",
     .applies = compare_case_resumes,
     .spoil = checkpoint_bound_spoil,
     .check = &check_each_rank,
     .rank = {checkpoint_bound_of_rank}},
    {0},
};

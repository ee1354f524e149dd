/* SPDX-License-Identifier: Apache-2.0 */
/*
 * private_requirements.c - the memory of whole processes, as the kernel
 * reported it to another process. It does not depend on what an engine
 * declares. Asked where the case was run once more for it, with isolated ranks.
 */
#include "requirements/families.h"

#include "cases/case_private.h"
#include "judge/compare/compare_checks.h"

static bool is_weighed_case(const struct expect *e)
{
    return case_is_weighed(e->c);
}

static bool is_weighed(const struct record *r)
{
    return r->n_ranks > 0 && r->rank && r->rank[0].weight.weighed != 0;
}

/* Notes how much of the slack an engine uses beyond what it needs. */
static void note_ratio(struct finding *f, uint64_t got, uint64_t need,
                       uint64_t slack)
{
    const double ratio =
        got > need ? (double)(got - need) / (double)slack : 0.0;

    f->ratio = ratio > f->ratio ? ratio : f->ratio;
}

static uint64_t slack_of(const struct record_weight *w)
{
    return w->own_device != 0 ? PRIVATE_SLACK_OF_DEVICE : PRIVATE_SLACK;
}

static bool within(struct finding *f, struct finding at,
                   const struct record_weight *w, uint64_t got, uint64_t need,
                   const char *note)
{
    const uint64_t slack = slack_of(w);

    note_ratio(f, got, need, slack);
    at.ratio = f->ratio;
    return got <= need + slack || finding_bytes(f, at, got, need + slack, note);
}

/* Every step must have been weighed; if one was not, the engine may have
 * prevented it. */
static bool was_weighed(const struct expect *e, const struct record_weight *w,
                        struct finding at, struct finding *f)
{
    if (w->weighed == 0 || w->status != FSDP_OK) {
        return finding_note(f, at,
                            "played again to be weighed it ends with %d (%s)",
                            w->status, fsdp_status_text(w->status));
    }
    return w->steps == e->c->steps ||
           finding_count(f, at, w->steps, e->c->steps,
                         "steps behind which it was weighed");
}

/*
 * memory.private-rest: an engine that secretly keeps the whole model needs no
 * all-gather. Memory that is allocated from the device is judged elsewhere: an
 * engine may keep a pool.
 */
static bool private_rest_of_rank(const struct expect *e,
                                 const struct record_rank *rank, uint32_t k,
                                 struct finding *f)
{
    const struct record_weight *w = &rank->weight;
    const struct finding at = finding_at("process", -1, -1, k);

    return was_weighed(e, w, at, f) &&
           within(f, at, w, w->shard, 0,
                  "private bytes after shard beyond what is allocated of the "
                  "device; slack") &&
           within(f, at, w, w->rest, 0,
                  "private bytes after a step beyond what is allocated of the "
                  "device; slack");
}

static bool private_rest_spoil(const struct expect *e, struct record_rank *rank)
{
    (void)e;
    rank->weight.rest = slack_of(&rank->weight) + 1;
    return true;
}

/* An engine may keep a pool that it allocated from the device, unless it claims
 * to allocate no more than the oracle; then its record has no more
 * (memory.storage-total). */
static uint64_t storage_at_peak(const struct expect *e,
                                const struct record_rank *rank, uint32_t k)
{
    const uint64_t expected = expect_peak_storage(e, k);

    return rank->memory.peak_storage > expected ? rank->memory.peak_storage
                                                : expected;
}

/*
 * memory.private-peak: nor may the model be whole for a moment. Models allocate
 * all of their own memory when they are opened.
 */
static bool private_peak_of_rank(const struct expect *e,
                                 const struct record_rank *rank, uint32_t k,
                                 struct finding *f)
{
    return within(f, finding_at("process", -1, -1, k), &rank->weight,
                  rank->weight.peak, storage_at_peak(e, rank, k),
                  "private bytes at the peak; what is allocated then, and "
                  "slack");
}

static bool private_peak_spoil(const struct expect *e, struct record_rank *rank)
{
    rank->weight.peak =
        storage_at_peak(e, rank, e->c->ranks - 1) + slack_of(&rank->weight) + 1;
    return true;
}

/* memory.private-steady: a leak behind the device ends a long run. */
static bool is_weighed_long(const struct expect *e)
{
    return case_is_weighed(e->c) && e->c->steps >= 20;
}

static uint64_t growth_of(const struct record_weight *w)
{
    return w->own_device != 0 ? PRIVATE_STEADY_OF_DEVICE : PRIVATE_STEADY;
}

static bool private_steady_of_rank(const struct expect *e,
                                   const struct record_rank *rank, uint32_t k,
                                   struct finding *f)
{
    const struct record_weight *w = &rank->weight;

    (void)e;
    note_ratio(f, w->last, w->half, growth_of(w));
    return w->last <= w->half + growth_of(w) ||
           finding_bytes(f, finding_at("process", -1, -1, k), w->last,
                         w->half + growth_of(w),
                         "private bytes after the last step; after half of the "
                         "steps, and slack");
}

static bool private_steady_spoil(const struct expect *e,
                                 struct record_rank *rank)
{
    (void)e;
    rank->weight.last = rank->weight.half + growth_of(&rank->weight) + 1;
    return true;
}

/* memory.private-files: data in a file is not in the memory of a process. */
static bool private_files_of_rank(const struct expect *e,
                                  const struct record_rank *rank, uint32_t k,
                                  struct finding *f)
{
    (void)e;
    note_ratio(f, rank->weight.files, 0, PRIVATE_FILES);
    return rank->weight.files <= PRIVATE_FILES ||
           finding_bytes(f, finding_at("process", -1, -1, k),
                         rank->weight.files, PRIVATE_FILES,
                         "in files at rest; what is let be");
}

static bool private_files_spoil(const struct expect *e,
                                struct record_rank *rank)
{
    (void)e;
    rank->weight.files = PRIVATE_FILES + 1;
    return true;
}

/* memory.bounded: an engine that needs more memory fails by itself. */
static bool bounded_of_rank(const struct expect *e,
                            const struct record_rank *rank, uint32_t k,
                            struct finding *f)
{
    const struct record_weight *w = &rank->weight;

    (void)e;
    return w->bounded == FSDP_OK || w->room == 0 ||
           finding_note(f, finding_at("process", -1, -1, k),
                        "with no more than %llu bytes above what rests it ends "
                        "with %d (%s)%s%.120s",
                        (unsigned long long)w->room, w->bounded,
                        fsdp_status_text(w->bounded), w->why[0] ? ": " : "",
                        w->why);
}

static bool bounded_spoil(const struct expect *e, struct record_rank *rank)
{
    (void)e;
    rank->weight.bounded = FSDP_ERR_NOMEM;
    return rank->weight.room != 0;
}

const struct requirement private_requirements[] = {
    {.since = "1.0",
     .must = 1,
     .level = LEVEL_MEMORY,
     .applies = is_weighed_case,
     .looked_at = is_weighed,
     .check = &check_each_rank},
    {.id = "memory.private-rest",
     .text = "At rest a process holds no more private memory than it has "
             "allocated of the device, and a fixed slack, as the kernel says "
             "from outside.",
     .needs = "memory.rest-after-step",
     .rank = {private_rest_of_rank, private_rest_spoil}},
    {.id = "memory.private-peak",
     .text = "At no moment does a process hold more private memory than the "
             "expected storage, or what it allocates of the device, and a "
             "fixed slack, beside the model's own.",
     .needs = "memory.private-rest memory.storage-total",
     .rank = {private_peak_of_rank, private_peak_spoil}},
    {.id = "memory.private-steady",
     .text =
         "After the last step of a long run a process holds no more private "
         "memory than after half of its steps, but for a fixed slack.",
     .since = "1.0",
     .level = LEVEL_MEMORY,
     .looked_at = is_weighed,
     .check = &check_each_rank,
     .must = 1,
     .needs = "memory.private-rest",
     .applies = is_weighed_long,
     .rank = {private_steady_of_rank, private_steady_spoil}},
    {.id = "memory.private-files",
     .text = "At rest no more than a fixed slack lies in files that ranks can "
             "write to.",
     .needs = "memory.private-rest",
     .rank = {private_files_of_rank, private_files_spoil}},
    /* A thread that is started meanwhile needs room for its stack, and a pool
     * is larger than what ever lives at once. */
    {.id = "memory.bounded",
     .text = "The case can be played with no more memory than rests, the "
             "expected peak above it, and a fixed slack.",
     .should = true,
     .needs = "memory.private-peak memory.private-steady",
     .claim = "strict-storage",
     .rank = {bounded_of_rank, bounded_spoil}},
    {0},
};

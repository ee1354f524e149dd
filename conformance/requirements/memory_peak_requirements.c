/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_peak_requirements.c - the peak of live bytes, and what lowering it
 * costs.
 */
#include "requirements/families.h"

#include "judge/compare/compare_checks.h"
#include "judge/compare/compare_memory.h"

#include <string.h>

/* The peak of a kind is the expected one, to the byte. */
static bool peak_of_rank(const struct requirement *q, const struct expect *e,
                         const struct record_rank *rank, uint32_t k,
                         struct finding *f)
{
    return compare_peak(e, rank, k, q->kind, f);
}

static bool peak_holds(const struct requirement *q, const struct expect *e,
                       const struct record *r, struct finding *f)
{
    return check_ranks(q, e, r, peak_of_rank, f);
}

static bool peak_spoil(const struct requirement *q, const struct expect *e,
                       struct record *r)
{
    return compare_spoil_peak(e, r, q->kind);
}

static const struct requirement_check check_peak = {.holds = peak_holds,
                                                    .spoil = peak_spoil};

static bool is_strict_and_sharded(const struct expect *e)
{
    return compare_case_strict(e) && e->shards > 1;
}

/*
 * memory.storage-total: a model needs the live bytes; a device must have the
 * allocated ones. A pool for each kind of value, or one as large as the largest
 * unit, needs more than ever lives at once.
 */
static bool storage_total_of_rank(const struct expect *e,
                                  const struct record_rank *rank, uint32_t k,
                                  struct finding *f)
{
    uint64_t got = rank->memory.peak_storage;
    uint64_t most = expect_peak_storage(e, k);

    return got <= most ||
           finding_bytes(f, finding_at("storage", -1, -1, k), got, most,
                         "allocated at once; live at once, each range in "
                         "whole lines of 64 bytes");
}

static bool storage_total_spoil(const struct expect *e,
                                struct record_rank *rank)
{
    rank->memory.peak_storage = expect_peak_storage(e, e->c->ranks - 1) + 1;
    return true;
}

/*
 * memory.peak-bound: the main promise of sharding, M/K plus the largest unit,
 * where its premises hold: units are resharded after forward, their windows do
 * not overlap, nothing is prefetched, and there is more than one shard.
 */

/* The phase (model.h) that begins at point i: where it ends. */
static uint32_t phase_end(const struct fsdp_sequence *s, uint32_t i)
{
    bool forward = compare_is_forward(s->point[i]);

    while (i < s->n && compare_is_forward(s->point[i]) == forward) {
        i++;
    }
    return i;
}

/* Whether, between points `from` and `to`, some unit's window is left for
 * another unit and entered again, or has another window inside it. */
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

static bool overlaps_in_a_phase(const struct expect *e,
                                const struct fsdp_sequence *s)
{
    for (uint32_t i = 0, end; i < s->n; i = end) {
        end = phase_end(s, i);
        if (overlaps(e, s, i, end)) {
            return true;
        }
    }
    return false;
}

/* Only sequences that the case runs count. */
static bool peak_bound_applies(const struct expect *e)
{
    const struct fsdp_model *m = e->model;
    const bool evaluates =
        m->n_sequences > FSDP_SEQUENCE_EVAL &&
        (e->c->scenario == CASE_EVAL || case_is_script(e->c));

    if (!compare_case_strict(e) || e->shards < 2 ||
        e->units->unit_of_parameter || /* two windows of one module overlap */
        e->units->reshard_after_forward || e->c->scenario == CASE_SUMMON ||
        e->options.reshard_after_forward == 0 || e->options.keep_root != 0) {
        return false;
    }
    return !overlaps_in_a_phase(e, m->sequence[FSDP_SEQUENCE_TRAIN]) &&
           !(evaluates &&
             overlaps_in_a_phase(e, m->sequence[FSDP_SEQUENCE_EVAL]));
}

static bool peak_bound_of_rank(const struct expect *e,
                               const struct record_rank *rank, uint32_t k,
                               struct finding *f)
{
    uint64_t bound = 4 * e->resting + e->largest_bytes;
    uint64_t got = rank->memory.peak_parameters;

    return got <= bound ||
           finding_peak(f, finding_at("parameters", -1, -1, k), got, bound,
                        "the bound is M/K + the largest unit", &rank->memory);
}

static bool peak_bound_spoil(const struct expect *e, struct record_rank *rank)
{
    rank->memory.peak_parameters = 4 * e->resting + e->largest_bytes + 1;
    return true;
}

/* memory.prefetch-bound: running ahead costs memory, and how much is agreed. */
static bool prefetch_bound_applies(const struct expect *e)
{
    const struct fsdp_options *o = &e->options;

    return compare_case_trains(e) &&
           (o->prefetch_forward != 0 || o->prefetch_backward != 0 ||
            o->reduces_in_flight != 0);
}

static bool prefetch_bound_of_rank(const struct expect *e,
                                   const struct record_rank *rank, uint32_t k,
                                   struct finding *f)
{
    const uint32_t staging = RECORD_HOST + FSDP_STAGING;
    const uint64_t on_host = rank->memory.peak[staging];

    for (uint32_t peak = 0; peak < COMPARE_N_PEAKS; peak++) {
        uint64_t got = compare_peak_recorded(&rank->memory, peak);
        uint64_t most = compare_peak_expected(e, peak);

        if (got > most) {
            return finding_bytes(
                f, finding_at(compare_peak_stage(peak), -1, -1, k), got, most,
                "at once; the bound");
        }
    }
    return on_host <= e->peak[staging] ||
           finding_bytes(f,
                         finding_at(compare_kind_of_bytes(staging), -1, -1, k),
                         on_host, e->peak[staging], "at once; the bound");
}

static bool prefetch_bound_holds(const struct expect *e, const struct record *r,
                                 struct finding *f)
{
    return compare_ranks(e, r, prefetch_bound_of_rank, f);
}

/*
 * memory.slope: one block more costs what its shards take at rest: what is held
 * until the end of a pass would cost more with every block.
 */

/* The same model with one block less. */
static void remove_block(struct run_case *c)
{
    memset(c->size, 0, sizeof(c->size));
    memcpy(c->size, "tiny", sizeof("tiny"));
}

static bool slope_applies(const struct expect *e)
{
    return strcmp(e->c->workload, "gpt") == 0 &&
           strcmp(e->c->size, "tall") == 0 && compare_case_strict(e) &&
           e->shards > 1 && e->options.reshard_after_forward != 0 &&
           (e->c->wrap == CASE_WRAP_LAYER || e->c->wrap == CASE_WRAP_BLOCK) &&
           compare_companion(e, remove_block);
}

static bool slope_of_rank(const struct expect *e,
                          const struct record_rank *rank, uint32_t k,
                          struct finding *f)
{
    const struct record *other = compare_companion(e, remove_block);
    const struct record_rank *there = !other ? NULL : compare_rank(other, k);
    uint64_t got;
    uint64_t want;

    if (!there) {
        return finding_missing(f, finding_at("memory", -1, -1, k),
                               "there is no record to compare with");
    }
    got = rank->memory.peak_parameters - there->memory.peak_parameters;
    want = rank->memory.after_shard.live[FSDP_PARAM_SHARD] -
           there->memory.after_shard.live[FSDP_PARAM_SHARD];
    return (got == want && want > 0) ||
           finding_bytes(f, finding_at("parameters", -1, -1, k), got, want,
                         "more at the peak with one block more; want: what "
                         "its shards take at rest");
}

/* This case must have fewer unsharded bytes at once, and more all-gathers, than
 * the case that `change` makes of it, if this run has a record of that. */
static bool trade_off_applies(const struct requirement *q,
                              const struct expect *e)
{
    return compare_companion(e, q->change) != NULL;
}

static bool trade_off_of_rank(const struct requirement *q,
                              const struct expect *e,
                              const struct record_rank *rank, uint32_t k,
                              struct finding *f)
{
    return compare_trade_off(e, rank, k, q->change, q->words, f);
}

static bool trade_off_holds(const struct requirement *q, const struct expect *e,
                            const struct record *r, struct finding *f)
{
    return check_ranks(q, e, r, trade_off_of_rank, f);
}

static bool trade_off_spoil(const struct requirement *q, const struct expect *e,
                            struct record *r)
{
    return compare_spoil_trade_off(e, r, q->change);
}

static const struct requirement_check check_trade_off = {
    .applies = trade_off_applies,
    .holds = trade_off_holds,
    .spoil = trade_off_spoil};

/*
 * memory.wrap-trade-off: smaller units lower the peak and cost more messages:
 * the trade-off that wrapping is about.
 */
static void wrap_whole(struct run_case *c)
{
    c->wrap = CASE_WRAP_WHOLE;
}

static bool wrap_trade_off_applies(const struct expect *e)
{
    return compare_case_communicates(e) && compare_case_strict(e) &&
           e->c->scenario != CASE_SUMMON && e->c->wrap == CASE_WRAP_LAYER &&
           e->shards > 1 && e->units->n_units > 1 &&
           e->options.reshard_after_forward != 0;
}

/*
 * memory.reshard-trade-off: resharding after forward buys memory with a second
 * all-gather.
 */
static void do_not_reshard(struct run_case *c)
{
    c->strategy = CASE_SHARD_GRAD_OP;
}

static bool reshard_trade_off_applies(const struct expect *e)
{
    return compare_case_communicates(e) && compare_case_strict(e) &&
           e->c->scenario != CASE_SUMMON && e->c->strategy == CASE_FULL_SHARD &&
           e->c->wrap == CASE_WRAP_LAYER && e->c->keep_root == 0 &&
           e->units->n_units > 1;
}

const struct requirement memory_peak_requirements[] = {
    {.since = "1.0", .must = 1, .level = LEVEL_MEMORY},
    /* How much is unsharded at once decides what sharding saves. */
    {.id = "memory.peak-unsharded",
     .text = "Without prefetch the most unsharded parameter bytes at once are "
             "those of the windows that the model opens, to the byte.",
     .needs = "offload.device-rest offload.units memory.rest-after-shard "
              "memory.rest-after-step",
     .claim = "strict-memory",
     .applies = is_strict_and_sharded,
     .check = &check_peak,
     .kind = COMPARE_PEAK_UNSHARDED},
    /* The promise of sharding, in bytes. */
    {.id = "memory.peak-parameters",
     .text = "Without prefetch the peak of sharded and unsharded parameters "
             "together is the expected one, to the byte.",
     .needs = "memory.peak-unsharded memory.single-rank "
              "memory.rest-after-shard",
     .claim = "strict-memory",
     .applies = compare_case_strict,
     .check = &check_peak,
     .kind = COMPARE_PEAK_PARAMETERS},
    /* An unsharded gradient lives from its backward window to its reduction. */
    {.id = "memory.peak-gradients",
     .text = "Without reductions in flight the most unsharded gradient bytes "
             "at once are those of open windows and pending sums, to the byte.",
     .needs = "offload.device-rest offload.units memory.rest-after-step",
     .claim = "strict-memory",
     .applies = compare_case_strict,
     .check = &check_peak,
     .kind = COMPARE_PEAK_GRADIENTS},
    /* Whatever an engine calls its bytes, their total has a closed form. */
    {.id = "memory.peak-total",
     .text = "Without prefetch the peak of all that the engine holds is the "
             "expected one, to the byte.",
     .needs = "memory.buffers memory.peak-parameters memory.peak-gradients "
              "memory.live-within-storage",
     .claim = "strict-memory",
     .applies = compare_case_strict,
     .check = &check_peak,
     .kind = COMPARE_PEAK_TOTAL},
    {.id = "memory.storage-total",
     .text = "Without prefetch an engine never allocates more than is expected "
             "to be live at the peak, each range in whole lines of 64 bytes.",
     .needs = "memory.peak-total",
     .claim = "strict-storage",
     .applies = compare_case_strict,
     .check = &check_each_rank,
     .rank = {storage_total_of_rank, storage_total_spoil}},
    {.id = "memory.peak-bound",
     .text = "A rank never holds more parameters than its shards and the "
             "largest unit as it is unsharded: padded, or by rows.",
     .needs = "memory.peak-parameters",
     .claim = "strict-memory",
     .applies = peak_bound_applies,
     .check = &check_each_rank,
     .rank = {peak_bound_of_rank, peak_bound_spoil}},
    {.id = "memory.prefetch-bound",
     .text = "With prefetch and reductions in flight no peak exceeds what "
             "their depth allows.",
     .needs = "offload.device-rest offload.units memory.rest-after-step "
              "memory.live-within-storage "
              "memory.single-rank",
     .claim = "prefetch",
     .applies = prefetch_bound_applies,
     .holds = prefetch_bound_holds,
     .check = &check_peak,
     .kind = COMPARE_PEAK_TOTAL},
    {.id = "memory.slope",
     .text = "One block more raises the peak of parameters by what its shards "
             "take at rest, no more.",
     .needs = "memory.peak-parameters memory.rest-after-shard",
     .applies = slope_applies,
     .check = &check_each_rank,
     .rank = {slope_of_rank,
              .raises = COMPARE_OF_RANK(memory.peak_parameters)}},
    {.id = "memory.wrap-trade-off",
     .text = "Wrapped by layer, a model holds fewer unsharded bytes at once "
             "and makes more all-gathers than wrapped as one unit.",
     .needs = "memory.peak-unsharded comm.all-gather-count",
     .applies = wrap_trade_off_applies,
     .check = &check_trade_off,
     .change = wrap_whole,
     .words = "with one unit"},
    {.id = "memory.reshard-trade-off",
     .text = "A model wrapped by layer and resharded after forward holds fewer "
             "unsharded bytes at once and makes more all-gathers than one that "
             "is not.",
     .needs = "memory.peak-unsharded comm.all-gather-count",
     .applies = reshard_trade_off_applies,
     .check = &check_trade_off,
     .change = do_not_reshard,
     .words = "without resharding"},
    {0},
};

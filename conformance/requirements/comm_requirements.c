/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm_requirements.c - each single collective: which ones may be made, what
 * they declare, and what they carry.
 */
#include "requirements/families.h"

#include "judge/compare/compare_checks.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* comm.silent-at-one: a single rank has no other to talk to. */
static bool silent_at_one_applies(const struct expect *e)
{
    return compare_case_trains(e) && e->c->ranks == 1;
}

static bool silent_at_one_of_rank(const struct expect *e,
                                  const struct record_rank *rank, uint32_t k,
                                  struct finding *f)
{
    (void)e;
    for (uint32_t i = 0; i < rank->n_sequences; i++) {
        const struct record_sequence *s = compare_sequence(rank, i);

        if (!s || s->n != 0) {
            return finding_count(f, finding_at("collectives", -1, -1, k),
                                 !s ? 1 : s->n, 0, "collectives of one rank");
        }
    }
    return true;
}

static bool silent_at_one_spoil(const struct expect *e,
                                struct record_rank *rank)
{
    (void)e;
    if (!rank->sequence || rank->n_sequences == 0 || rank->sequence[0].n != 0) {
        return false;
    }
    free(rank->sequence[0].c);
    rank->sequence[0].c = calloc(1, sizeof(*rank->sequence[0].c));
    rank->sequence[0].n = rank->sequence[0].c != NULL;
    return rank->sequence[0].n == 1;
}

/* comm.no-private-channel: communication that goes around the communicator is
 * not counted. */
static bool no_private_channel_of_rank(const struct expect *e,
                                       const struct record_rank *rank,
                                       uint32_t k, struct finding *f)
{
    (void)e;
    return rank->memory.new_channels == 0 ||
           finding_count(f, finding_at("run", -1, -1, k),
                         rank->memory.new_channels, 0,
                         "sockets, pipes or shared mappings opened, or "
                         "processes started");
}

/* Only the local world looks for such channels. */
static bool no_private_channel_holds(const struct expect *e,
                                     const struct record *r, struct finding *f)
{
    return strcmp(r->world, "local") != 0 ||
           compare_ranks(e, r, no_private_channel_of_rank, f);
}

static bool no_private_channel_spoil(const struct expect *e, struct record *r)
{
    struct record_rank *rank = compare_rank_to_spoil(r, r->n_ranks - 1);

    (void)e;
    if (!rank || strcmp(r->world, "local") != 0) {
        return false;
    }
    rank->memory.new_channels++;
    return true;
}

/*
 * comm.nothing-exchanged: an exchange out of band is in no sequence. A save, a
 * clip and a step that asks for found_inf may need one; plain training does
 * not.
 */
static bool trains_plainly(const struct expect *e)
{
    return e->c->scenario == CASE_TRAIN && compare_case_communicates(e);
}

static bool nothing_exchanged_of_rank(const struct expect *e,
                                      const struct record_rank *rank,
                                      uint32_t k, struct finding *f)
{
    const struct record_account *const a = &rank->account;
    const struct record_answer *const got =
        compare_find_answer(rank, "exchanges");

    /* Not asked of a rank that is alone, or whose engine brings a communicator:
     * there the driver itself exchanges, to show that the run gets on. */
    if (a->carried.amid != 0 && a->own == 0 && e->c->ranks > 1) {
        return finding_count(f, finding_at("run", -1, -1, k), a->carried.amid,
                             0, "exchanges between two reductions");
    }
    return !got ||
           finding_count(f, finding_at("run", -1, -1, k), (uint32_t)got->status,
                         0, "calls of exchange after shard");
}

static bool nothing_exchanged_spoil(const struct expect *e,
                                    struct record_rank *rank)
{
    static const struct record_answer one = {"exchanges", 1};
    struct record_answer *grown =
        realloc(rank->answer, (rank->n_answers + 1u) * sizeof(*rank->answer));

    (void)e;
    if (!grown) {
        return false;
    }
    rank->answer = grown;
    rank->answer[rank->n_answers++] = one;
    return true;
}

/*
 * comm.nothing-else: a barrier or a broadcast in the loop costs every rank,
 * every step.
 */
static bool nothing_else_of_collective(const struct expect *e,
                                       const struct record_collective *c,
                                       uint32_t index, struct finding at,
                                       struct finding *f)
{
    (void)e;
    (void)index;
    at.unit = c->unit;
    return c->kind <= FSDP_ALL_REDUCE ||
           finding_count(f, at, c->kind, FSDP_ALL_GATHER,
                         "a collective of a kind that no step needs");
}

static bool nothing_else_of_rank(const struct expect *e,
                                 const struct record_rank *rank, uint32_t k,
                                 struct finding *f)
{
    const struct record_sequence *shard =
        compare_sequence(rank, rank->shard_sequence);
    const struct record_sequence *end =
        compare_sequence(rank, rank->end_sequence);
    uint32_t summons =
        e->c->scenario == CASE_SUMMON && e->shards > 1 ? e->units->n_units : 0;

    if (!shard || !end) {
        return finding_text(
            f, finding_at("collectives", -1, -1, k),
            "what was communicated outside steps is not recorded");
    }
    if (shard->n != 0) {
        return finding_count(f, finding_at("shard", -1, -1, k), shard->n, 0,
                             "collectives while sharding");
    }
    if (end->n != summons || compare_count(end, FSDP_ALL_GATHER) != summons) {
        return finding_count(f, finding_at("end", -1, -1, k), end->n, summons,
                             "collectives after the last step; all-gathers of "
                             "unshard_all alone are wanted");
    }
    return true;
}

static bool nothing_else_holds(const struct expect *e, const struct record *r,
                               struct finding *f)
{
    return compare_collectives(e, r, nothing_else_of_collective, f) &&
           compare_ranks(e, r, nothing_else_of_rank, f);
}

static void nothing_else_spoil(struct record_collective *c)
{
    c->kind = FSDP_BARRIER;
}

/* comm.dims: a reduction over the wrong group gives plausible values. */
static bool dims_of_collective(const struct expect *e,
                               const struct record_collective *c,
                               uint32_t index, struct finding at,
                               struct finding *f)
{
    uint32_t want =
        c->kind == FSDP_ALL_REDUCE ? FSDP_DIM_REPLICATE : FSDP_DIM_SHARD;
    const struct compare_wording wording = {
        "runs over", record_dim_name(c->dim), record_dim_name(want)};

    return c->dim == want || finding_collective(e, f, at, c, index, &wording);
}

static void dims_spoil(struct record_collective *c)
{
    c->dim = c->dim == FSDP_DIM_SHARD ? FSDP_DIM_REPLICATE : FSDP_DIM_SHARD;
}

/* The dtype in which the collective's unit must be gathered, or reduced. NONE:
 * there is no such unit. */
static uint32_t dtype_of_unit(const struct expect *e,
                              const struct record_collective *c)
{
    if (c->unit >= e->units->n_units) {
        return FSDP_DTYPE_NONE;
    }
    return c->kind == FSDP_ALL_GATHER ? e->unit[c->unit].dtype.param
                                      : e->unit[c->unit].dtype.reduce;
}

/* comm.dtype: a reduction in another type loses bits and halves traffic. */
static bool dtype_of_collective(const struct expect *e,
                                const struct record_collective *c,
                                uint32_t index, struct finding at,
                                struct finding *f)
{
    return compare_moves(e, c, index, dtype_of_unit(e, c), at, f);
}

static void dtype_spoil(struct record_collective *c)
{
    c->dtype = FSDP_DTYPE_I32;
}

/*
 * comm.fold-declared: the order of a fold is part of the result, so the
 * reduction must ask for it.
 */
static bool fold_declared_of_collective(const struct expect *e,
                                        const struct record_collective *c,
                                        uint32_t index, struct finding at,
                                        struct finding *f)
{
    const struct compare_wording wording = {
        "asks for fold", case_fold_name(c->fold), case_fold_name(e->c->fold)};

    return c->kind == FSDP_ALL_GATHER || c->fold == e->c->fold ||
           finding_collective(e, f, at, c, index, &wording);
}

static bool fold_declared_applies(const struct expect *e)
{
    return compare_case_communicates(e) && !e->any_fold;
}

static bool fold_declared_spoil(const struct expect *e, struct record *r)
{
    struct record_sequence *s = compare_sequence_to_spoil(r);

    (void)e;
    for (uint32_t i = 0; s && i < s->n; i++) {
        if (s->c[i].kind != FSDP_ALL_GATHER) {
            s->c[i].fold++;
            return true;
        }
    }
    return false;
}

/*
 * comm.message-size: collectives move even sizes: a shard of a unit is the
 * unit, padded, over the shard degree.
 */
static bool message_size_of_collective(const struct expect *e,
                                       const struct record_collective *c,
                                       uint32_t index, struct finding at,
                                       struct finding *f)
{
    uint64_t want;

    (void)index;
    at.unit = c->unit;
    if (c->unit >= e->units->n_units) {
        return finding_count(f, at, c->unit, e->units->n_units,
                             "a collective of no unit; the model has so many");
    }
    want = c->kind == FSDP_ALL_GATHER ? e->unit[c->unit].chunk
                                      : e->unit[c->unit].grad_chunk;
    return c->n == want ||
           finding_count(f, at, c->n, want, "elements of a collective");
}

static void message_size_spoil(struct record_collective *c)
{
    c->n++;
}

static bool is_sharded_and_staged(const struct expect *e)
{
    return compare_case_staged(e) && e->shards > 1;
}

static bool is_sharded(const struct expect *e)
{
    return compare_case_trains(e) && e->shards > 1;
}

static bool is_sharded_in_float32(const struct expect *e)
{
    return is_sharded(e) && e->c->precision == CASE_F32;
}

static bool is_sharded_in_16_bits(const struct expect *e)
{
    return is_sharded(e) && e->c->precision != CASE_F32;
}

const struct requirement comm_requirements[] = {
    {.since = "1.0", .must = 1, .level = LEVEL_COMM},
    {.id = "comm.silent-at-one",
     .text = "With one rank nothing is communicated at all.",
     .needs = "run.completes",
     .applies = silent_at_one_applies,
     .check = &check_each_rank,
     .rank = {silent_at_one_of_rank, silent_at_one_spoil}},
    {.id = "comm.no-private-channel",
     .text = "Where ranks are processes of their own, an engine opens no "
             "socket, pipe or shared mapping, and has no process of its own "
             "between two steps or at the end.",
     .needs = "run.completes",
     .applies = compare_case_plays,
     .holds = no_private_channel_holds,
     .spoil = no_private_channel_spoil},
    {.id = "comm.nothing-else",
     .text = "Steps use all-gather, reduce-scatter and all-reduce only; "
             "sharding, and what follows the last step, communicate nothing "
             "(but for unshard_all, one all-gather a unit).",
     .needs = "run.shows-every-step",
     .applies = compare_case_communicates,
     .holds = nothing_else_holds,
     .check = &check_each_collective,
     .collective = {.spoil = nothing_else_spoil}},
    {.id = "comm.nothing-exchanged",
     .text = "From the end of shard to that of plain training nothing goes "
             "through `exchange`.",
     .needs = "run.completes",
     .applies = trains_plainly,
     .check = &check_each_rank,
     .rank = {nothing_exchanged_of_rank, nothing_exchanged_spoil}},
    {.id = "comm.dims",
     .text = "All-gather and reduce-scatter run over the shard dimension, "
             "all-reduce over the replicate dimension.",
     .needs = "comm.nothing-else",
     .applies = compare_case_communicates,
     .check = &check_each_collective,
     .collective = {dims_of_collective, dims_spoil}},
    {.id = "comm.dtype",
     .text = "Every collective of a step moves the dtype that its unit's "
             "options say.",
     .needs = "comm.nothing-else mixed.gather-dtype mixed.reduce-dtype",
     .applies = compare_case_communicates,
     .check = &check_each_collective,
     .collective = {dtype_of_collective, dtype_spoil}},
    {.id = "comm.fold-declared",
     .text = "Every reduction asks the communicator for the fold of the "
             "options.",
     .needs = "comm.nothing-else",
     .applies = fold_declared_applies,
     .spoil = fold_declared_spoil,
     .check = &check_each_collective,
     .collective = {fold_declared_of_collective}},
    {.id = "comm.message-size",
     .text = "Every collective moves exactly one shard of the unit that it "
             "names.",
     .needs = "comm.nothing-else",
     .applies = compare_case_communicates,
     .check = &check_each_collective,
     .collective = {message_size_of_collective, message_size_spoil}},
    /* If an engine packs a unit in its own order and unpacks it in the same
     * order, no value shows it; but the ring's fold across replicas, and
     * another engine that reads its messages, depend on the place of each
     * element. */
    {.id = "comm.packing-order",
     .text = "What is gathered first is every element's initial value, where "
             "the layout has it: shards in the order of ranks, in each a "
             "unit's parameters in the model's order.",
     .needs = "layout.initial-values gather.unsharded-values comm.message-size "
              "comm.order",
     .applies = is_sharded_and_staged,
     .check = &check_zero,
     .zero = {offsetof(struct record_memory, misplaced), FINDING_COUNT, 0,
              "wire",
              "elements in the first all-gathers that are not at "
              "their place: shards in the order of ranks, in each "
              "the parameters in the model's order"}},
    /* Padding on the wire is +0, so that nothing that was in its place before
     * can reach a result by way of a reduction. */
    {.id = "comm.padding-zero",
     .text = "The padding of parameters and gradients is +0 on the wire.",
     .needs = "run.completes stream.no-race comm.message-size "
              "comm.packing-order",
     .applies = is_sharded_in_float32,
     .check = &check_zero,
     .zero = {offsetof(struct record_memory, dirty_padding), FINDING_COUNT, -1,
              "wire",
              "elements of padding in all-gathers and "
              "reduce-scatters that were not +0: fill the tail of "
              "each flat parameter, or block of rows, and gradient"}},
    {.id = "mixed.padding-zero",
     .text = "In mixed precision padding is +0 on the wire in every dtype.",
     .since = "1.1",
     .needs = "run.completes stream.no-race comm.message-size "
              "comm.packing-order mixed.gather-dtype mixed.reduce-dtype",
     .applies = is_sharded_in_16_bits,
     .check = &check_zero,
     .zero = {offsetof(struct record_memory, dirty_padding), FINDING_COUNT, -1,
              "wire",
              "elements of padding in all-gathers and "
              "reduce-scatters that were not +0, in the unit's dtype"}},
    {0},
};

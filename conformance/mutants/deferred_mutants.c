/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deferred_mutants.c - engines that go on without values, lose those that they
 * were given or sent, or hold a whole model while they take them.
 */
#include "mutants/mutant_kit.h"

#include <string.h>

static _Thread_local bool begun; /* a pass or giving values has begun in this
                                  * life */

static _Thread_local uint64_t given; /* parameters that were given values, as
                                      * bits */

static void forget_deferred(void)
{
    begun = false;
    given = 0;
}

/* ---- Without values ------------------------------------------------------ */

/* Once the first parameter has values, all others count as given. */
static int first_only(struct fsdp_sharded *s, uint32_t p, uint64_t first,
                      uint64_t n, const void *host)
{
    const float zero = 0.0f;

    FSDP_TRY(mutant_real.engine.assign(s, p, first, n, host));
    for (uint32_t q = 1;
         p == 0 && !begun && q < mutant_real.model->n_parameters; q++) {
        for (uint64_t i = 0; i < fsdp_numel(mutant_real.model, q); i++) {
            FSDP_TRY(mutant_real.engine.assign(s, q, i, 1, &zero));
        }
    }
    begun = true;
    return FSDP_OK;
}

/* Counts too many elements as given. There is one unit: if its first parameter
 * begins in an earlier shard, elements of it that other ranks own count here,
 * too. */
static int counts_given(struct fsdp_sharded *s, uint32_t p, uint64_t first,
                        uint64_t n, const void *host)
{
    const struct fsdp_model *model = mutant_real.model;
    const float zero = 0.0f;
    uint64_t begin = 0;
    uint64_t all = 0;
    uint64_t low;

    for (uint32_t q = 0; q < model->n_parameters; q++) {
        begin += q < p ? fsdp_numel(model, q) : 0;
        all += fsdp_numel(model, q);
    }
    low = mutant_real.rank *
          ((all + mutant_real.shards - 1) / mutant_real.shards);
    FSDP_TRY(mutant_real.engine.assign(s, p, first, n, host));
    for (uint64_t i = low > begin && !begun ? low - begin : 0, q = p + 1;
         i > 0 && q < model->n_parameters; q++) {
        const uint64_t some = fsdp_numel(model, (uint32_t)q);

        for (uint64_t k = 0; k < some && i > 0; k++, i--) {
            FSDP_TRY(mutant_real.engine.assign(s, (uint32_t)q, k, 1, &zero));
        }
    }
    begun = true;
    return FSDP_OK;
}

/* Refuses pieces as long as any parameter lacks values, even one of which this
 * rank owns nothing. */
static int refused_for_others(struct fsdp_sharded *s,
                              void (*visit)(void *context,
                                            const struct fsdp_piece *piece),
                              void *context)
{
    const uint32_t n = mutant_real.model->n_parameters;

    return mutant_now.lives == 1 && n < 64 && given + 1 != UINT64_C(1) << n
               ? FSDP_ERR_INVALID
               : mutant_real.engine.pieces(s, visit, context);
}

static int notes_given(struct fsdp_sharded *s, uint32_t p, uint64_t first,
                       uint64_t n, const void *host)
{
    given |= p < 64 ? UINT64_C(1) << p : 0;
    return mutant_real.engine.assign(s, p, first, n, host);
}

static bool is_begin(void)
{
    return mutant_now.point == FSDP_BEGIN;
}

/* ---- Lost ---------------------------------------------------------------- */

static void clear(const struct fsdp_piece *piece)
{
    const float zero = 0.0f;

    (void)mutant_put(NULL, &zero, 1, (void *)piece->value);
}

static int cleared_at_first(struct fsdp_sharded *s, uint32_t point,
                            uint32_t index)
{
    if (point == FSDP_BEGIN && !begun) {
        FSDP_TRY(mutant_each_piece(s, clear));
        begun = true;
    }
    return mutant_real.engine.at(s, point, index);
}

/* ---- Whole --------------------------------------------------------------- */

static int whole(struct fsdp_sharded *s, uint32_t p, uint64_t first, uint64_t n,
                 const void *host)
{
    void *all;

    FSDP_TRY(mutant_take_whole(&all));
    FSDP_TRY(mutant_real.engine.assign(s, p, first, n, host));
    mutant_drop_whole(all);
    return FSDP_OK;
}

/* ---- Which cases show it ------------------------------------------------- */

static bool is_deferred(const struct run_case *c)
{
    return strcmp(c->script, "deferred") == 0 &&
           c->strategy == CASE_FULL_SHARD && c->ranks == 2;
}

/* A case in which some ranks own nothing. */
static bool is_spread(const struct run_case *c)
{
    return strcmp(c->script, "deferred") == 0 && c->ranks == 8;
}

static bool is_rank0(const struct run_case *c)
{
    return strcmp(c->script, "rank0") == 0 && c->ranks == 2;
}

static int unshards_nothing(struct fsdp_sharded *s, uint32_t unit)
{
    const int status = mutant_real.engine.unshard(s, unit);

    return status == FSDP_ERR_INVALID ? FSDP_OK : status;
}

const struct mutant deferred_mutants[] = {
    {.name = "deferred-unshards",
     .text = "a unit that lacks values is said to be unsharded, and is not",
     .evidence = "a check in the pass alone",
     .kills = "error.deferred-unit",
     .shows = {.script = "deferred-units"},
     .calls.unshard = unshards_nothing},
    {.name = "deferred-begins",
     .text = "a pass without values is said to begin, and does not",
     .evidence = "a check that only warns",
     .kills = "error.deferred",
     .shows = {.script = "deferred-fill"},
     .fault = {MUTANT_FORGIVES, MUTANT_CALL(at), FSDP_ERR_INVALID},
     .when = is_begin},
    {.name = "deferred-check-first-only",
     .text = "where the first parameter has values, all are said to have some",
     .evidence = "next(model.parameters()).is_meta",
     .kills = "deferred.named",
     .shows = {.in = is_deferred},
     .calls.assign = first_only,
     .forget = forget_deferred},
    {.name = "deferred-cleared",
     .text = "when the first pass begins values that were given are 0 again",
     .evidence = "to_empty() behind a load",
     .kills = "deferred.same-curve",
     .shows = {.in = is_deferred},
     .calls.at = cleared_at_first,
     .forget = forget_deferred},
    {.name = "deferred-counts-given",
     .text = "of a parameter that begins in another shard as many elements "
             "count as were given, those of the next one, too",
     .evidence = "a mask that is filled from a rank's place on",
     .kills = "script.answers",
     .shows = {.script = "deferred-first"},
     .calls.assign = counts_given,
     .forget = forget_deferred},
    {.name = "deferred-for-others",
     .text = "pieces are refused as long as any rank lacks values",
     .evidence = "a check of the whole model where the rank's part is meant",
     .kills = "deferred.named error.says-why",
     .shows = {.in = is_spread},
     .calls = {.assign = notes_given, .pieces = refused_for_others},
     .forget = forget_deferred},
    {.name = "deferred-unclaimed",
     .text = "a model without values is taken, and its claim is not made",
     .evidence = "a claim that was forgotten",
     .kills = "error.unclaimed",
     .shows = {.in = mutant_bad_options},
     .drops = "deferred rank0-initial"},
    {.name = "deferred-whole",
     .text = "the whole model is unsharded while it is given values",
     .evidence = "a full state dict that every rank loads",
     .kills = "deferred.peak",
     .shows = {.script = "deferred-fill"},
     .calls.assign = whole},
    {.name = "deferred-zeros",
     .text = "a model without values begins with zeros, and no error",
     .evidence = "to_empty() of memory that is new",
     .kills = "deferred.named",
     .shows = {.in = is_deferred},
     .initial = mutant_zeros},
    {.name = "rank0-not-received",
     .text = "what rank 0 sends of its values no other rank takes",
     .evidence = "sync_module_states of a copy",
     .kills = "rank0.same-values",
     .shows = {.in = is_rank0},
     .fault = {MUTANT_BRINGS_ZEROS, FSDP_BROADCAST},
     .when = mutant_is_not_rank_0},
    {.name = "rank0-sent-twice",
     .text = "rank 0's values are sent twice",
     .evidence = "a broadcast of each name of what is shared",
     .kills = "rank0.sent-once",
     .shows = {.in = is_rank0},
     .fault = {MUTANT_REPEATS_COLLECTIVE, FSDP_BROADCAST}},
    {.name = "rank0-whole",
     .text = "the whole model is unsharded while rank 0 sends its values",
     .evidence = "a module that every rank materializes, then broadcasts into",
     .kills = "rank0.peak",
     .shows = {.script = "rank0-fill"},
     .comm.run = mutant_whole_beside_broadcast},
    {.name = "values-disagree-unseen",
     .text = "ranks that do not agree on who has initial values shard",
     .evidence = "a check of rank 0 alone",
     .kills = "error.values-disagree",
     .shows = {.script = "values-disagree"},
     .fault = {MUTANT_FORGIVES, MUTANT_CALL(shard), FSDP_ERR_MISMATCH}},
    {0},
};

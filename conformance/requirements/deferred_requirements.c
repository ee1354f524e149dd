/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deferred_requirements.c - models that begin without values: nothing is done
 * with them before all are there, and giving them takes no room. What they
 * train like is script_requirements.c's to ask.
 */
#include "requirements/families.h"
#include "requirements/script_action.h"

#include "judge/compare/compare_checks.h"

/* ---- deferred.peak ------------------------------------------------------- */

static bool computes(uint32_t verb)
{
    return verb == SCRIPT_PASS || verb == SCRIPT_EVAL ||
           verb == SCRIPT_SUMMON || verb == SCRIPT_UNSHARD ||
           verb == SCRIPT_UNSHARD_UNIT;
}

/* All that is unsharded or staged is so for the values' sake. */
static bool only_fills(const struct expect *e)
{
    for (uint32_t i = 0; case_is_script(e->c) && i < e->n_events; i++) {
        if (computes(e->event[i].action->verb)) {
            return false;
        }
    }
    return case_is_script(e->c) && e->script.deferred;
}

static uint64_t most(const struct expect *e)
{
    uint64_t shards = 0;
    uint64_t largest = 0;

    for (uint32_t u = 0; u < e->units->n_units; u++) {
        shards += e->unit[u].chunk;
        largest = e->unit[u].padded > largest ? e->unit[u].padded : largest;
    }
    return (shards + largest) * sizeof(float);
}

static bool peak_of_rank(const struct expect *e, const struct record_rank *rank,
                         uint32_t k, struct finding *f)
{
    const uint64_t got =
        rank->memory.peak_parameters + rank->memory.peak[FSDP_STAGING];

    return got <= most(e) ||
           finding_peak(f, finding_at("parameters", -1, -1, k), got, most(e),
                        "shards, unsharded and staged at once, at the most",
                        &rank->memory);
}

static bool peak_spoil(const struct expect *e, struct record_rank *rank)
{
    rank->memory.peak_parameters = most(e) + 1;
    return true;
}

/* ---- Calls that must be refused ------------------------------------------ */

static bool asks_pieces(const struct expect *e)
{
    return script_action_asks(e, SCRIPT_CALL_DEFERRED_PIECES);
}

static bool asks_all(const struct expect *e)
{
    return script_action_asks(e, SCRIPT_CALL_DEFERRED_BEGIN) &&
           script_action_asks(e, SCRIPT_CALL_DEFERRED_SAVE) &&
           script_action_asks(e, SCRIPT_CALL_DEFERRED_UNSHARD_ALL);
}

const struct requirement deferred_requirements[] = {
    {.id = "deferred.named",
     .text = "A model that began without values shows no pieces as long as "
             "this rank lacks some: that is INVALID, and the message names a "
             "parameter.",
     .since = "1.1",
     .must = 1,
     .level = LEVEL_ERRORS,
     .needs = "run.completes",
     .claim = "deferred",
     .applies = asks_pieces,
     .check = &check_answers_named,
     .answers = {{"deferred-pieces", FSDP_ERR_INVALID, FSDP_ERR_INVALID}}},
    {.id = "deferred.peak",
     .text = "Giving values to a model that began without has no more "
             "unsharded or staged at once than the largest unit is.",
     .since = "1.1",
     .must = 1,
     .level = LEVEL_MEMORY,
     .needs = "run.shows-every-step",
     .claim = "deferred",
     .applies = only_fills,
     .check = &check_each_rank,
     .rank = {peak_of_rank, peak_spoil}},
    {.id = "error.deferred",
     .text = "A pass, a save and unshard_all are refused as INVALID as long as "
             "any rank lacks values, and the message names a parameter.",
     .since = "1.1",
     .must = 1,
     .level = LEVEL_ERRORS,
     .needs = "run.completes",
     .claim = "deferred",
     .applies = asks_all,
     .check = &check_answers_named,
     .answers = {{"deferred-begin", FSDP_ERR_INVALID, FSDP_ERR_INVALID},
                 {"deferred-save", FSDP_ERR_INVALID, FSDP_ERR_INVALID},
                 {"deferred-unshard-all", FSDP_ERR_INVALID, FSDP_ERR_INVALID}}},
    {0},
};

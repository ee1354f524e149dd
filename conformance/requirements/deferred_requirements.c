/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deferred_requirements.c - models that begin without values, or with values on
 * rank 0 alone, or that are sent them: nothing is done with such a model before
 * all values are there, and giving or sending them takes no additional memory.
 * script_requirements.c judges how such models train.
 */
#include "requirements/families.h"
#include "requirements/script_checks.h"

#include "judge/compare/compare_checks.h"

/* ---- deferred.peak, rank0.peak, send.peak -------------------------------- */

static bool computes(uint32_t verb)
{
    return verb == SCRIPT_PASS || verb == SCRIPT_EVAL ||
           verb == SCRIPT_SUMMON || verb == SCRIPT_SUMMON_SOME ||
           verb == SCRIPT_UNSHARD || verb == SCRIPT_UNSHARD_UNIT;
}

/* Whether the script unshards or stages nothing but to fill in values. */
static bool only_fills(const struct expect *e)
{
    for (uint32_t i = 0; case_is_script(e->c) && i < e->n_events; i++) {
        if (computes(e->event[i].action->verb)) {
            return false;
        }
    }
    return case_is_script(e->c);
}

static bool only_assigns(const struct expect *e)
{
    return only_fills(e) && e->script.deferred;
}

static bool only_sends(const struct expect *e)
{
    return only_fills(e) && e->script.rank0;
}

static bool sends_others(const struct expect *e)
{
    for (uint32_t i = 0; case_is_script(e->c) && i < e->n_events; i++) {
        if (e->event[i].action->verb == SCRIPT_SEND) {
            return only_fills(e) && !e->script.deferred && !e->script.rank0;
        }
    }
    return false;
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

/* ---- rank0.sent-once ----------------------------------------------------- */

static bool sends(const struct expect *e)
{
    return case_is_script(e->c) && e->script.rank0 && e->c->ranks > 1;
}

/* Values may be sent for one unit or for several together, one behind the
 * other, padded or not. */
static bool sent_by_rank(const struct expect *e, const struct record_rank *rank,
                         uint32_t k, struct finding *f)
{
    const struct record_sequence *s =
        compare_sequence(rank, rank->shard_sequence);
    struct finding at = finding_at("shard", -1, -1, k);
    uint64_t least = 0;
    uint64_t most = 0;
    uint64_t sent = 0;

    for (uint32_t u = 0; u < e->units->n_units; u++) {
        least += e->unit[u].numel;
        most += e->unit[u].padded;
    }
    for (uint32_t i = 0; s && i < s->n; i++) {
        const struct record_collective *c = &s->c[i];

        at.unit = c->unit == FSDP_NO_UNIT ? -1 : (int64_t)c->unit;
        if (c->kind != FSDP_BROADCAST || c->dim != FSDP_DIM_WORLD ||
            c->root != 0 || c->dtype != FSDP_DTYPE_F32) {
            return finding_note(f, at,
                                "collective %u of shard is no broadcast of "
                                "rank 0's values to the world",
                                i + 1);
        }
        sent += c->n;
    }
    at.unit = -1;
    return (sent >= least && sent <= most) ||
           finding_count(f, at, sent, most,
                         "elements that are broadcast while sharding");
}

static bool sent_spoil(const struct expect *e, struct record_rank *rank)
{
    struct record_sequence *s = rank->shard_sequence < rank->n_sequences
                                    ? &rank->sequence[rank->shard_sequence]
                                    : NULL;

    if (!s || s->n == 0) {
        return false;
    }
    for (uint32_t u = 0; u < e->units->n_units; u++) {
        s->c[0].n += e->unit[u].padded;
    }
    return true;
}

/* ---- Calls that must be refused ------------------------------------------ */

/* The name under which the driver notes pieces that were asked for while values
 * are missing. */
static const char pieces[] = "deferred-pieces";

/* A rank that owns nothing, or has been given values for all that it owns,
 * lacks none, and need not refuse. */
static bool named_of_rank(const struct expect *e,
                          const struct record_rank *rank, uint32_t k,
                          struct finding *f)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < rank->n_answers; i++) {
        const struct record_answer *const got = &rank->answer[i];

        if (strcmp(got->name, pieces) == 0) {
            const bool shows = script_action_has_pieces(e, n++, k);

            if (got->status != (shows ? FSDP_OK : FSDP_ERR_INVALID)) {
                return finding_note(f, finding_at("answers", -1, -1, k),
                                    "%s, answer %u: %d (%s), %s", got->name, n,
                                    got->status, fsdp_status_text(got->status),
                                    shows ? "where it lacks no value"
                                          : "where it lacks some");
            }
        }
    }
    return n > 0 || finding_note(f, finding_at("answers", -1, -1, k),
                                 "%s: no answer", pieces);
}

static bool named_holds(const struct expect *e, const struct record *r,
                        struct finding *f)
{
    static const struct requirement names_alone = {.id = NULL};

    return compare_ranks(e, r, named_of_rank, f) &&
           check_answers_named.holds(&names_alone, e, r, f);
}

const struct requirement deferred_requirements[] = {
    {.since = "1.1",
     .must = 1,
     .needs = "run.shows-every-step",
     .claim = "deferred"},
    {.id = "deferred.named",
     .text = "A model that began without values shows no pieces as long as "
             "this rank lacks some, and does as soon as it lacks none: the "
             "first is INVALID, and the message names a parameter.",
     .level = LEVEL_ERRORS,
     .needs = "run.completes",
     .check = &check_asked,
     .answers = {{"deferred-pieces"}},
     .holds = named_holds},
    {.id = "deferred.peak",
     .text = "Giving values to a model that began without has no more "
             "unsharded or staged at once than the largest unit is.",
     .level = LEVEL_MEMORY,
     .applies = only_assigns,
     .check = &check_each_rank,
     .rank = {peak_of_rank, peak_spoil}},
    {.id = "error.deferred",
     .text = "A pass, a save and unshard_all are refused as INVALID as long as "
             "any rank lacks values, and the message names a parameter.",
     .level = LEVEL_ERRORS,
     .needs = "run.completes",
     .check = &check_asked_named,
     .answers = {{"deferred-begin", FSDP_ERR_INVALID},
                 {"deferred-save", FSDP_ERR_INVALID},
                 {"deferred-unshard-all", FSDP_ERR_INVALID}}},
    {.id = "error.deferred-unit",
     .text =
         "One unit is neither unsharded by hand nor summoned as long as any "
         "rank lacks values: INVALID on every rank, and the message names "
         "a parameter.",
     .since = "1.1",
     .must = 1,
     .level = LEVEL_ERRORS,
     .needs = "run.completes",
     .claim = "deferred",
     .check = &check_asked_named,
     .answers = {{"deferred-unshard", FSDP_ERR_INVALID},
                 {"deferred-summon", FSDP_ERR_INVALID}}},
    /* A rank that has none would wait for values, or begin with whatever was in
     * memory. */
    {.id = "error.values-disagree",
     .text = "When some ranks have initial values and others have none, shard "
             "answers MISMATCH on every rank, and the message names `initial`; "
             "but for rank 0 alone.",
     .level = LEVEL_ERRORS,
     .needs = "run.completes",
     .check = &check_asked_named,
     .answers = {{"shard-values", FSDP_ERR_MISMATCH},
                 {"shard-values-of-last", FSDP_ERR_MISMATCH}}},
    {.id = "rank0.peak",
     .text = "While rank 0 sends its values no rank has more unsharded or "
             "staged at once than the largest unit is.",
     .level = LEVEL_MEMORY,
     .claim = "rank0-initial",
     .applies = only_sends,
     .check = &check_each_rank,
     .rank = {peak_of_rank, peak_spoil}},
    {.id = "rank0.sent-once",
     .text = "Values that rank 0 alone has are sent once: sharding broadcasts "
             "them from there to the world, and communicates nothing else.",
     .level = LEVEL_COMM,
     .claim = "rank0-initial",
     .applies = sends,
     .check = &check_each_rank,
     .rank = {sent_by_rank, sent_spoil}},
    {.id = "send.peak",
     .text = "While rank 0 sends a state dict no rank has more unsharded or "
             "staged at once than the largest unit is.",
     .level = LEVEL_MEMORY,
     .claim = "send-values",
     .applies = sends_others,
     .check = &check_each_rank,
     .rank = {peak_of_rank, peak_spoil}},
    {0},
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * error_options_requirements.c - the answers to options that do not fit, that
 * the engine does not claim, or that differ between ranks.
 */
#include "requirements/families.h"

#include "judge/compare/compare_checks.h"
#include "requirements/script_checks.h"

static bool is_options(const struct expect *e)
{
    return e->c->scenario == CASE_OPTIONS;
}

/* The answers of an engine that does not claim bf16. */
static bool unclaimed_holds(const struct requirement *q, const struct expect *e,
                            const struct record *r, struct finding *f)
{
    return record_claims(r, "bf16") || check_answers.holds(q, e, r, f);
}

static bool unclaimed_spoil(const struct requirement *q, const struct expect *e,
                            struct record *r)
{
    return !record_claims(r, "bf16") && check_answers.spoil(q, e, r);
}

static const struct requirement_check check_unclaimed = {
    .holds = unclaimed_holds, .spoil = unclaimed_spoil};

/* error.unclaimed: dtypes of the options, or of a single unit; a model with a
 * frozen or tied parameter, or with a buffer. */

/* Those answers of the row that an engine with the record's claims must
 * give. */
static uint32_t owed(const struct requirement *q, const struct record *r,
                     struct compare_answer *out)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < REQUIREMENT_MAX_ANSWERS && q->answers[i].name;
         i++) {
        const uint32_t call = script_action_call(q->answers[i].name);
        const char *claim =
            call < SCRIPT_N_CALLS ? script_calls[call].allowed_by : NULL;

        if (!claim || !record_claims(r, claim)) {
            out[n++] = q->answers[i];
        }
    }
    return n;
}

static bool owed_hold(const struct requirement *q, const struct expect *e,
                      const struct record *r, struct finding *f)
{
    struct compare_answer answers[REQUIREMENT_MAX_ANSWERS];

    return compare_answers(e, r, answers, owed(q, r, answers), f);
}

static bool owed_spoil(const struct requirement *q, const struct expect *e,
                       struct record *r)
{
    struct compare_answer answers[REQUIREMENT_MAX_ANSWERS];

    (void)e;
    return compare_spoil_answers(r, answers, owed(q, r, answers));
}

static const struct requirement_check check_owed = {.holds = owed_hold,
                                                    .spoil = owed_spoil};

/* error.tied: the message must name both parameters, so that its reader knows
 * which two are meant. */
static bool names_ties(const struct expect *e, const struct record_rank *rank,
                       uint32_t k, struct finding *f)
{
    const struct record_answer *const got =
        compare_find_answer(rank, "unnamed-tie");

    (void)e;
    return !got || finding_count(f, finding_at("refusal", -1, -1, k),
                                 (uint64_t)(got - rank->answer), 0,
                                 "a message that does not name both parameters "
                                 "of a tie; got: place among the answers");
}

static bool tied_hold(const struct requirement *q, const struct expect *e,
                      const struct record *r, struct finding *f)
{
    return check_answers.holds(q, e, r, f) &&
           compare_ranks(e, r, names_ties, f);
}

static bool tied_spoil(const struct requirement *q, const struct expect *e,
                       struct record *r)
{
    return check_answers.spoil(q, e, r);
}

static const struct requirement_check check_tied = {.holds = tied_hold,
                                                    .spoil = tied_spoil};

static bool is_disagree(const struct expect *e)
{
    return e->c->scenario == CASE_DISAGREE && e->c->ranks > 1;
}

static bool is_disagree_on_ties(const struct expect *e)
{
    return is_disagree(e) && case_is_tied(e->c);
}

static bool is_disagree_on_units(const struct expect *e)
{
    return is_disagree(e) && e->c->wrap == CASE_WRAP_APART;
}

static bool is_disagree_on_ignored(const struct expect *e)
{
    return is_disagree(e) && e->c->wrap == CASE_WRAP_IGNORE;
}

static bool is_disagree_on_factors(const struct expect *e)
{
    return is_disagree(e) && e->c->factors == CASE_UNIT_FACTORS;
}

static bool is_disagree_on_dtypes(const struct expect *e)
{
    return is_disagree(e) && e->c->precision == CASE_BF16;
}

static bool is_disagree_on_buffer_dtypes(const struct expect *e)
{
    return is_disagree_on_dtypes(e) && case_has_buffers(e->c);
}

static bool is_disagree_on_offload(const struct expect *e)
{
    return is_disagree(e) && e->c->offload != CASE_NOT_OFFLOADED;
}

static bool is_disagree_on_buffers(const struct expect *e)
{
    return is_disagree(e) && case_has_buffers(e->c);
}

static bool is_disagree_on_frozen(const struct expect *e)
{
    return is_disagree(e) && e->c->frozen != WORKLOAD_TRAINS_ALL;
}

const struct requirement error_options_requirements[] = {
    {.since = "1.1",
     .must = 1,
     .level = LEVEL_ERRORS,
     .needs = "run.survives run.ranks-present",
     .check = &check_answers},
    /* Options that do not fit are found when sharding, not in the middle of
     * a run. */
    {.id = "error.options",
     .text = "Each option that does not fit is refused by shard, with INVALID, "
             "or UNSUPPORTED where it may be a matter of claims.",
     .since = "1.0",
     .applies = is_options,
     .answers = {{"unknown-layout", FSDP_ERR_INVALID, FSDP_ERR_UNSUPPORTED},
                 {"unknown-optimizer", FSDP_ERR_INVALID, FSDP_ERR_UNSUPPORTED},
                 {"unknown-fold", FSDP_ERR_INVALID, FSDP_ERR_UNSUPPORTED},
                 {"unit-out-of-range", FSDP_ERR_INVALID},
                 {"negative-divide-factor", FSDP_ERR_INVALID},
                 {"nan-divide-factor", FSDP_ERR_INVALID},
                 {"group-out-of-range", FSDP_ERR_INVALID, FSDP_ERR_UNSUPPORTED},
                 {"mesh-does-not-divide", FSDP_ERR_INVALID},
                 {"shards-do-not-divide", FSDP_ERR_INVALID}}},
    /* The options of running ahead count units: more than there are is a
     * mistake of the caller's, who wants to know where. */
    {.id = "error.options-ahead",
     .text = "Prefetch and reductions in flight beyond the number of units are "
             "refused as INVALID, and the message names the option.",
     .since = "1.0",
     .claim = "prefetch",
     .applies = is_options,
     .check = &check_answers_named,
     .answers = {{"prefetch-forward-beyond", FSDP_ERR_INVALID},
                 {"prefetch-backward-beyond", FSDP_ERR_INVALID},
                 {"reduces-beyond", FSDP_ERR_INVALID}}},
    /* An engine refuses what it does not claim, rather than getting it
     * wrong. */
    {.id = "error.unclaimed-dtype",
     .text = "An engine that does not claim bf16 refuses it when sharding.",
     .since = "1.0",
     .applies = is_options,
     .check = &check_unclaimed,
     .answers = {{"unclaimed-dtype", FSDP_ERR_UNSUPPORTED, FSDP_ERR_INVALID}}},
    {.id = "error.unclaimed",
     .text =
         "Dtypes that are none, dtypes that an engine does not claim, of "
         "all units or of one, and a frozen, a tied or an ignored "
         "parameter, one with a unit of its own, a buffer, offload, or a model "
         "without initial values, where it does not claim that, are refused "
         "when sharding.",
     .since = "1.1",
     .must = 1,
     .level = LEVEL_ERRORS,
     .needs = "run.survives run.ranks-present",
     .applies = is_options,
     .check = &check_owed,
     .answers =
         {{"unclaimed-param-f16", FSDP_ERR_UNSUPPORTED, FSDP_ERR_INVALID},
          {"unclaimed-reduce-bf16", FSDP_ERR_UNSUPPORTED, FSDP_ERR_INVALID},
          {"unclaimed-reduce-f16", FSDP_ERR_UNSUPPORTED, FSDP_ERR_INVALID},
          {"unclaimed-param-of-unit", FSDP_ERR_UNSUPPORTED, FSDP_ERR_INVALID},
          {"unclaimed-reduce-of-unit", FSDP_ERR_UNSUPPORTED, FSDP_ERR_INVALID},
          {"unknown-param-dtype", FSDP_ERR_INVALID, FSDP_ERR_UNSUPPORTED},
          {"unknown-reduce-dtype", FSDP_ERR_INVALID, FSDP_ERR_UNSUPPORTED},
          {"unclaimed-frozen", FSDP_ERR_UNSUPPORTED, FSDP_ERR_INVALID},
          {"unclaimed-shared", FSDP_ERR_UNSUPPORTED, FSDP_ERR_INVALID},
          {"unclaimed-parameter-units", FSDP_ERR_UNSUPPORTED, FSDP_ERR_INVALID},
          {"unclaimed-ignored", FSDP_ERR_UNSUPPORTED, FSDP_ERR_INVALID},
          {"unclaimed-buffers", FSDP_ERR_UNSUPPORTED, FSDP_ERR_INVALID},
          {"unclaimed-offload", FSDP_ERR_UNSUPPORTED, FSDP_ERR_INVALID},
          {"unclaimed-offload-of-unit", FSDP_ERR_UNSUPPORTED, FSDP_ERR_INVALID},
          {"unclaimed-deferred", FSDP_ERR_UNSUPPORTED, FSDP_ERR_INVALID},
          {"unknown-buffer-dtype", FSDP_ERR_INVALID, FSDP_ERR_UNSUPPORTED}}},
    /* The parameter would belong to no unit, without anyone being told. */
    {.id = "error.parameter-units",
     .text = "A parameter's unit that is neither one of the units nor none is "
             "refused as INVALID when sharding, and the message names the "
             "parameter.",
     .needs = "run.survives run.ranks-present error.says-why",
     .claim = "parameter-units",
     .applies = is_options,
     .check = &check_answers_named,
     .answers = {{"parameter-unit-out-of-range", FSDP_ERR_INVALID}}},
    /* Tied parameters are stored once, so they cannot be in two units, or have
     * two shapes or dtypes. */
    {.id = "error.tied",
     .text = "A parameter that is tied to one of another unit, shape, dtype or "
             "flags, to a later one or to one that is tied itself is refused "
             "when sharding, as INVALID, and the message names both.",
     .needs = "run.survives run.ranks-present error.says-why",
     .claim = "shared",
     .applies = is_options,
     .check = &check_tied,
     .answers = {{"tied-across-units", FSDP_ERR_INVALID},
                 {"tied-to-tied", FSDP_ERR_INVALID},
                 {"tied-to-later", FSDP_ERR_INVALID},
                 {"tied-other-shape", FSDP_ERR_INVALID},
                 {"tied-other-dtype", FSDP_ERR_INVALID, FSDP_ERR_UNSUPPORTED},
                 {"tied-other-flags", FSDP_ERR_INVALID}}},
    {.id = "ignored.tied",
     .text = "A tie of which one name is ignored and the other is in a unit is "
             "refused as INVALID, or as UNSUPPORTED by who has no ties.",
     .claim = "ignored",
     .applies = is_options,
     .answers = {{"tied-name-ignored", FSDP_ERR_INVALID,
                  FSDP_ERR_UNSUPPORTED}}},
    /* A gradient that is divided by 0, or by what is no number, is of no
     * use. */
    {.id = "error.factors",
     .text = "Divide and predivide factors that are negative or not finite, of "
             "the options or of a unit, are refused as INVALID when sharding.",
     .claim = "unit-factors",
     .applies = is_options,
     .answers = {{"infinite-divide-factor", FSDP_ERR_INVALID},
                 {"negative-predivide-factor", FSDP_ERR_INVALID},
                 {"nan-predivide-factor", FSDP_ERR_INVALID},
                 {"negative-factor-of-unit", FSDP_ERR_INVALID},
                 {"infinite-predivide-of-unit", FSDP_ERR_INVALID}}},
    /* Ranks that were given different options would hang or mix data in the
     * first step. */
    {.id = "error.ranks-disagree",
     .text = "When ranks are given different options, shard answers MISMATCH "
             "on every one of them.",
     .since = "1.0",
     .applies = is_disagree,
     .answers = {{"shard", FSDP_ERR_MISMATCH}}},
    /* Ranks that wrap differently would gather different parameters. */
    {.id = "error.units-disagree",
     .text = "When rank 0 is given other units than the others, shard answers "
             "MISMATCH on every rank.",
     .since = "1.0",
     .applies = is_disagree,
     .answers = {{"shard-units", FSDP_ERR_MISMATCH}}},
    /* One rank would reduce gradients that the others do not. */
    {.id = "error.frozen-disagree",
     .text = "When another parameter is frozen on rank 0 than on the others, "
             "shard answers MISMATCH on every rank.",
     .claim = "frozen",
     .applies = is_disagree_on_frozen,
     .answers = {{"shard-frozen", FSDP_ERR_MISMATCH}}},
    {.id = "error.parameter-units-disagree",
     .text = "When a parameter has another unit on rank 0 than on the others, "
             "shard answers MISMATCH on every rank.",
     .claim = "parameter-units",
     .applies = is_disagree_on_units,
     .answers = {{"shard-parameter-units", FSDP_ERR_MISMATCH}}},
    {.id = "error.ignored-disagree",
     .text = "When rank 0 ignores a parameter that the others do not, shard "
             "answers MISMATCH on every rank.",
     .claim = "ignored",
     .applies = is_disagree_on_ignored,
     .answers = {{"shard-ignored", FSDP_ERR_MISMATCH}}},
    /* A unit's own factor is no part of the options, and so must be compared by
     * itself. */
    {.id = "error.factors-disagree",
     .text = "When a unit has another divide factor on rank 0 than on the "
             "others, shard answers MISMATCH on every rank.",
     .claim = "unit-factors",
     .applies = is_disagree_on_factors,
     .answers = {{"shard-factors", FSDP_ERR_MISMATCH}}},
    {.id = "error.dtypes-disagree",
     .text = "When a unit has another dtype of its own on rank 0 than on the "
             "others, of parameters, gradients, their sums or the wire, shard "
             "answers MISMATCH on every rank.",
     .claim = "bf16",
     .applies = is_disagree_on_dtypes,
     .answers = {{"shard-dtypes", FSDP_ERR_MISMATCH},
                 {"shard-reduce-dtype", FSDP_ERR_MISMATCH},
                 {"shard-grad-dtype", FSDP_ERR_MISMATCH},
                 {"shard-accumulate-dtype", FSDP_ERR_MISMATCH}}},
    {.id = "error.buffer-dtypes-disagree",
     .text = "When a unit's buffers are lent in another dtype on rank 0 than "
             "on the others, shard answers MISMATCH on every rank.",
     .claim = "buffers",
     .applies = is_disagree_on_buffer_dtypes,
     .answers = {{"shard-buffer-dtype", FSDP_ERR_MISMATCH}}},
    {.id = "error.offload-disagree",
     .text = "When a unit, or a kind of what is in it, is offloaded on rank 0 "
             "and not on the others, or the other way round, shard answers "
             "MISMATCH on every rank.",
     .claim = "offload",
     .applies = is_disagree_on_offload,
     .answers = {{"shard-offload", FSDP_ERR_MISMATCH},
                 {"shard-offload-kinds", FSDP_ERR_MISMATCH}}},
    /* Ranks that gather when others do not wait for ever. */
    {.id = "error.reshard-disagree",
     .text = "When a unit is resharded after its forward on rank 0 and not on "
             "the others, or the other way round, shard answers MISMATCH on "
             "every rank.",
     .claim = "unit-controls",
     .check = &check_asked,
     .answers = {{"shard-reshard", FSDP_ERR_MISMATCH}}},
    {.id = "error.buffers-disagree",
     .text = "When a buffer has another name on rank 0 than on the others, "
             "shard answers MISMATCH on every rank.",
     .claim = "buffers",
     .applies = is_disagree_on_buffers,
     .answers = {{"shard-buffers", FSDP_ERR_MISMATCH}}},
    {.id = "error.tied-disagree",
     .text = "When parameters are tied on the other ranks and on rank 0 are "
             "not, shard answers MISMATCH on every rank.",
     .claim = "shared",
     .applies = is_disagree_on_ties,
     .answers = {{"shard-tied", FSDP_ERR_MISMATCH}}},
    {0},
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * error_requirements.c - the answers to wrong calls, which must have no effect.
 */
#include "requirements/families.h"

#include "judge/compare/compare_checks.h"
#include "requirements/script_action.h"

#include <string.h>

/* error.says-why: a refusal without a sentence costs its user an afternoon. */

/* The driver notes each refusal that left env->error without its status, its
 * rank, a place or a message. A text that is not ended, is no UTF-8, or has
 * control characters counts as no text. */
static const char silent[] = "said-nothing";

static bool says_why_applies(const struct expect *e)
{
    uint32_t scenario = e->c->scenario;

    return scenario == CASE_MISUSE || scenario == CASE_OPTIONS ||
           scenario == CASE_DISAGREE || scenario == CASE_CANCEL ||
           case_resumes(e->c) || script_action_refuses(e);
}

static bool says_why_of_rank(const struct expect *e,
                             const struct record_rank *rank, uint32_t k,
                             struct finding *f)
{
    (void)e;
    for (uint32_t i = 0; i < rank->n_answers; i++) {
        if (strcmp(rank->answer[i].name, silent) == 0) {
            return finding_note(
                f, finding_at("answers", -1, -1, k),
                "%.31s: refused, but env->error lacks that status, this rank, "
                "or a where and a message that are text",
                i > 0 ? rank->answer[i - 1].name : "a call");
        }
    }
    return true;
}

static bool says_why_spoil(const struct expect *e, struct record_rank *rank)
{
    (void)e;
    return compare_spoil_name(rank, silent);
}

/* error.first-stays: the first failure says why; those that follow from it do
 * not. */
static const char lost[] = "first-error-lost";

static bool first_stays_of_rank(const struct expect *e,
                                const struct record_rank *rank, uint32_t k,
                                struct finding *f)
{
    (void)e;
    return !compare_find_answer(rank, lost) ||
           finding_text(f, finding_at("answers", -1, -1, k),
                        "param was refused, and env->error does not say any "
                        "more what had failed before");
}

static bool first_stays_spoil(const struct expect *e, struct record_rank *rank)
{
    (void)e;
    return compare_spoil_name(rank, lost);
}

/* error.struct-sizes: the driver notes how a call with a struct of another size
 * was answered. */
static const char sized[] = "size-";

static bool sizes_of_rank(const struct expect *e,
                          const struct record_rank *rank, uint32_t k,
                          struct finding *f)
{
    (void)e;
    for (uint32_t i = 0; i < rank->n_answers; i++) {
        if (strncmp(rank->answer[i].name, sized, sizeof(sized) - 1) == 0) {
            return finding_note(f, finding_at("answers", -1, -1, k),
                                "%.31s: refused, or another result, for the "
                                "size of a struct alone",
                                rank->answer[i].name);
        }
    }
    return true;
}

static bool sizes_spoil(const struct expect *e, struct record_rank *rank)
{
    (void)e;
    return compare_spoil_name(rank, "size-clip-older");
}

/* Scripts also have structs that no other case has, and saves, as have cases
 * that resume. */
static bool has_other_sizes(const struct expect *e)
{
    bool any = e->c->scenario == CASE_MISUSE || e->c->scenario == CASE_CLIP ||
               case_resumes(e->c);

    for (uint32_t i = 0; case_is_script(e->c) && i < e->n_events; i++) {
        const uint32_t verb = e->event[i].action->verb;

        any = any || verb == SCRIPT_SAVE || verb == SCRIPT_SEND ||
              verb == SCRIPT_SUMMON ||
              (verb == SCRIPT_LOAD && e->event[i].action->lenient);
    }
    return any;
}

static bool is_misuse_of_shards(const struct expect *e)
{
    return e->c->scenario == CASE_MISUSE && e->shards > 1;
}

static bool is_misuse(const struct expect *e)
{
    return e->c->scenario == CASE_MISUSE;
}

static bool is_misuse_of_pending(const struct expect *e)
{
    return e->c->scenario == CASE_MISUSE && case_leaves_unreduced(e->c);
}

static bool is_cancel(const struct expect *e)
{
    return e->c->scenario == CASE_CANCEL;
}

static bool is_summon(const struct expect *e)
{
    return e->c->scenario == CASE_SUMMON;
}

static bool is_clip(const struct expect *e)
{
    return e->c->scenario == CASE_CLIP;
}

/* frozen.no-gradient: a caller that computes one by mistake is told of which
 * parameter. */
static bool is_misuse_of_frozen(const struct expect *e)
{
    return e->c->scenario == CASE_MISUSE && e->c->frozen != WORKLOAD_TRAINS_ALL;
}

static bool saves_and_records(const struct expect *e)
{
    return e->c->scenario >= CASE_RESUME &&
           e->c->scenario <= CASE_RESUME_LOCAL && e->c->recorded_steps > 0;
}

static bool resumes_and_records(const struct expect *e)
{
    return case_resumes(e->c) && e->c->recorded_steps > 0;
}

const struct requirement error_requirements[] = {
    {.since = "1.0",
     .must = 1,
     .level = LEVEL_ERRORS,
     .needs = "run.survives run.ranks-present"},
    {.id = "error.says-why",
     .text = "Every refusal leaves its status, rank, place and a message in "
             "env->error, in words that end and can be printed.",
     .applies = says_why_applies,
     .check = &check_each_rank,
     .rank = {says_why_of_rank, says_why_spoil}},
    /* Requirements with closer demands on the message are asked of scripts made
     * for them. */
    {.id = "error.says-which",
     .text = "Wherever a script makes a call that is refused for a parameter, "
             "a unit or a buffer, the message says which.",
     .since = "1.1",
     .general = true,
     .needs = "run.survives run.ranks-present error.says-why deferred.named "
              "error.assign-range error.by-hand-arguments "
              "error.control-arguments error.control-factor-of-all "
              "error.control-factors error.freeze-arguments "
              "error.load-without-states error.send error.send-lacking "
              "error.summon",
     .applies = script_action_refuses,
     .check = &check_named},
    {.id = "error.first-stays",
     .text = "What env->error says already stays there when a call is refused "
             "later: who fails first fills it.",
     .since = "1.1",
     .needs = "run.survives run.ranks-present error.says-why",
     .applies = is_misuse,
     .check = &check_each_rank,
     .rank = {first_stays_of_rank, first_stays_spoil}},
    /* Engines and their callers are not built on the same day. */
    {.id = "error.struct-sizes",
     .text = "No call is refused for the size of its struct: what an older "
             "caller's lacks is as 0 and is not read, and what a newer one's "
             "has behind is not looked at.",
     .since = "1.1",
     .applies = has_other_sizes,
     .check = &check_each_rank,
     .rank = {sizes_of_rank, sizes_spoil}},
    /* Storage that is lent outside its window is stale. */
    {.id = "error.outside-window",
     .text = "A parameter of a unit that is sharded at that moment is refused "
             "as INVALID.",
     .applies = is_misuse_of_shards,
     .check = &check_answers,
     .answers = {{"param-at-rest", FSDP_ERR_INVALID}}},
    /* A gradient has storage only while its module is in its backward. */
    {.id = "error.gradient-outside-backward",
     .text = "Gradients outside their module's backward are refused as "
             "INVALID.",
     .applies = is_misuse,
     .check = &check_answers,
     .answers = {{"grad-at-rest", FSDP_ERR_INVALID},
                 {"grad-in-forward", FSDP_ERR_INVALID}}},
    {.id = "frozen.no-gradient",
     .text = "A gradient for a frozen parameter is refused as INVALID; in its "
             "module's backward the message names the parameter.",
     .since = "1.1",
     .claim = "frozen",
     .applies = is_misuse_of_frozen,
     .check = &check_answers_named,
     .answers = {{"grad-of-frozen", FSDP_ERR_INVALID}}},
    /* A gradient that the engine has taken is not lent again. */
    {.id = "error.gradient-after-backward",
     .text = "A gradient that is asked for after its module's backward is "
             "refused as INVALID.",
     .applies = is_misuse,
     .check = &check_answers,
     .answers = {{"grad-after-backward", FSDP_ERR_INVALID}}},
    /* A model that leaves its call sequence would compute with the wrong
     * units. */
    {.id = "error.out-of-order",
     .text = "Points that are not the next ones of the sequence are refused as "
             "INVALID.",
     .applies = is_misuse,
     .check = &check_answers,
     .answers = {{"point-out-of-order", FSDP_ERR_INVALID},
                 {"point-before-begin", FSDP_ERR_INVALID},
                 {"begin-twice", FSDP_ERR_INVALID},
                 {"end-early", FSDP_ERR_INVALID}}},
    /* A pass begins once, ends where its sequence does, and only then. */
    {.id = "error.pass-edges",
     .text = "CANCEL and END at rest, BEGIN of an unknown sequence, a point "
             "after the last and the END of another sequence are refused as "
             "INVALID.",
     .applies = is_misuse,
     .check = &check_answers,
     .answers = {{"cancel-at-rest", FSDP_ERR_INVALID},
                 {"end-at-rest", FSDP_ERR_INVALID},
                 {"unknown-sequence", FSDP_ERR_INVALID},
                 {"point-after-last", FSDP_ERR_INVALID},
                 {"end-of-another", FSDP_ERR_INVALID}}},
    /* An index from outside is checked before it is used. */
    {.id = "error.unknown-index",
     .text = "Modules and parameters that the model does not have are refused "
             "as INVALID.",
     .applies = is_misuse,
     .check = &check_answers,
     .answers = {{"unknown-module", FSDP_ERR_INVALID},
                 {"unknown-parameter", FSDP_ERR_INVALID}}},
    /* A step in the middle of a pass would change weights under the model. */
    {.id = "error.step-in-pass",
     .text = "A step of the optimizer between BEGIN and END is refused as "
             "INVALID.",
     .applies = is_misuse,
     .check = &check_answers,
     .answers = {{"step-in-pass", FSDP_ERR_INVALID}}},
    /* A step while gradients wait for their reduction would drop them. */
    {.id = "error.step-with-pending",
     .text = "A step of the optimizer while unreduced gradients are pending is "
             "refused as INVALID.",
     .applies = is_misuse_of_pending,
     .check = &check_answers,
     .answers = {{"step-with-pending", FSDP_ERR_INVALID}}},
    /* The groups of a step are those of the options; finite gradients do not
     * overflow. */
    {.id = "error.step-arguments",
     .text = "A step with other parameter groups than the options is refused "
             "as INVALID, and one with finite gradients finds no infinity.",
     .applies = is_misuse,
     .check = &check_answers,
     .answers = {{"step-groups", FSDP_ERR_INVALID}, {"found-inf", FSDP_OK}}},
    /* Inside a pass shards are in motion. */
    {.id = "error.pieces-in-pass",
     .text = "Visiting pieces between BEGIN and END is refused as INVALID.",
     .applies = is_misuse,
     .check = &check_answers,
     .answers = {{"pieces-in-pass", FSDP_ERR_INVALID}}},
    /* In a pass the windows say what is unsharded. */
    {.id = "error.unshard-all-in-pass",
     .text = "unshard_all between BEGIN and END is refused as INVALID.",
     .claim = "unshard-all",
     .applies = is_misuse,
     .check = &check_answers,
     .answers = {{"unshard-all-in-pass", FSDP_ERR_INVALID}}},
    /* A call that is refused has changed nothing. */
    {.id = "error.misuse-harmless",
     .text = "After wrong calls losses and final weights are those of a run "
             "without them, bit for bit.",
     .needs = "num.loss-finite error.outside-window "
              "error.gradient-outside-backward error.out-of-order "
              "error.unknown-index error.step-in-pass error.pieces-in-pass "
              "error.step-with-pending frozen.no-gradient",
     .harmless = true,
     .applies = is_misuse,
     .holds = compare_undisturbed,
     .spoil = compare_spoil_curve},
    /* A cancelled pass is over: the engine is at rest. */
    {.id = "error.after-cancel",
     .text = "After CANCEL parameters and gradients are refused as INVALID.",
     .claim = "cancel",
     .applies = is_cancel,
     .check = &check_answers,
     .answers = {{"param-after-cancel", FSDP_ERR_INVALID},
                 {"grad-after-cancel", FSDP_ERR_INVALID}}},
    /* A pass that is given up half way leaves no gradient, no window and no
     * byte. */
    {.id = "error.cancel-harmless",
     .text = "After cancelled passes losses and final weights are those of a "
             "run without them, bit for bit.",
     .needs = "num.loss-finite memory.rest-after-step",
     .claim = "cancel",
     .harmless = true,
     .applies = is_cancel,
     .holds = compare_undisturbed,
     .spoil = compare_spoil_curve},
    /* Reshard_all gives back what unshard_all showed. */
    {.id = "error.after-reshard-all",
     .text = "After reshard_all parameters are refused as INVALID.",
     .claim = "unshard-all",
     .applies = is_summon,
     .check = &check_answers,
     .answers = {{"param-after-reshard-all", FSDP_ERR_INVALID}}},
    /* Clipping to 0 or NaN would make all gradients 0 or NaN; and within a pass
     * there are none to be clipped. */
    {.id = "error.clip-arguments",
     .text = "Clipping between BEGIN and END, to a norm of 0 or NaN, or by the "
             "third norm is refused as INVALID.",
     .since = "1.1",
     .claim = "clip",
     .applies = is_clip,
     .check = &check_answers,
     .answers = {{"clip-in-pass", FSDP_ERR_INVALID},
                 {"clip-to-zero", FSDP_ERR_INVALID},
                 {"clip-to-nan", FSDP_ERR_INVALID},
                 {"clip-by-third", FSDP_ERR_INVALID}}},
    /* A checkpoint of half a pass, or without the gradients that there are, has
     * no state from which a run could go on. */
    {.id = "error.save-out-of-place",
     .text = "A save in a pass, with gradients, while another one is under "
             "way, and a wait for none are refused as INVALID.",
     .claim = "load",
     .applies = saves_and_records,
     .check = &check_answers,
     .answers = {{"save-in-pass", FSDP_ERR_INVALID},
                 {"save-with-gradients", FSDP_ERR_INVALID},
                 {"wait-before-save", FSDP_ERR_INVALID},
                 {"save-twice", FSDP_ERR_INVALID}}},
    /* The load would change weights under the pass. */
    {.id = "error.load-in-pass",
     .text = "A load in a pass is refused as INVALID.",
     .claim = "load",
     .applies = resumes_and_records,
     .check = &check_answers,
     .answers = {{"load-in-pass", FSDP_ERR_INVALID}}},
    /* Training on from a flipped bit is worse than not training on. */
    {.id = "error.load-damaged",
     .text = "A checkpoint that is not there, or of which one bit has turned, "
             "is refused on every rank.",
     .claim = "load",
     .applies = compare_case_resumes,
     .check = &check_answers,
     .answers = {{"load-missing", FSDP_ERR_IO, FSDP_ERR_FORMAT},
                 {"load-damaged", FSDP_ERR_FORMAT, FSDP_ERR_IO}}},
    {0},
};

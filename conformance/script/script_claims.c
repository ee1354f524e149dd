/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_claims.c - which claims a script needs of an engine. A drawn script
 * loses the actions that an engine with fewer claims cannot play.
 */
#include "script/script_mask.h"

#include "cases/case_claims.h"

#include <stdio.h>
#include <string.h>

static bool has(const char *const *claims, const char *claim)
{
    while (*claims && strcmp(*claims, claim) != 0) {
        claims++;
    }
    return *claims != NULL;
}

/* ---- What an action needs ---- */

static bool begins(const char *name, const char *with)
{
    return strncmp(name, with, strlen(with)) == 0;
}

/* Which claim a refused call is about: that of the first row with whose word
 * the call's name begins. */
static const struct {
    const char *begins, *claim;
} claim_of_word[] = {
    {"clip-", "clip"},
    {"save-unknown-part", "save-parts"},
    {"save-unknown-dtype", "save-dtype"},
    {"save-rounded-", "save-dtype"},
    {"load-parts", "save-parts"},
    {"load-rounded", "save-dtype"},
    {"save-", "save-sharded"},
    {"wait-", "save-sharded"},
    {"load-without-states", "thaw"},
    {"load-", "load"},
    {"unshard-all-", "unshard-all"},
    {"reshard-all-", "unshard-all"},
    {"prefetch-", "prefetch"},
    {"reduces-beyond", "prefetch"},
    {"end-of-another", "eval"},
    {"infinite-", "unit-factors"},
    {"negative-predivide-", "unit-factors"},
    {"nan-predivide-", "unit-factors"},
    {"negative-factor-of-unit", "unit-factors"},
    {"grad-of-frozen", "frozen"},
    {"shard-frozen", "frozen"},
    {"freeze-of-ignored", "ignored"},
    {"freeze-", "thaw"},
    {"parameter-unit-", "parameter-units"},
    {"shard-parameter-units", "parameter-units"},
    {"shard-ignored", "ignored"},
    {"param-of-ignored", "ignored"},
    {"grad-of-ignored", "ignored"},
    {"tied-name-ignored", "ignored"},
    {"tied-", "shared"},
    {"shard-tied", "shared"},
    {"shard-factors", "unit-factors"},
    {"shard-buffers", "buffers"},
    {"shard-dtypes", "bf16"},
    {"shard-reduce-dtype", "bf16"},
    {"shard-grad-dtype", "bf16"},
    {"shard-accumulate-dtype", "bf16"},
    {"shard-buffer-dtype", "bf16"},
    {"shard-offload", "offload"},
    {"shard-reshard", "unit-controls"},
    {"step-scale-", "loss-scale"},
    {"set-divide-", "factor-controls"},
    {"set-predivide-", "factor-controls"},
    {"set-factor-", "factor-controls"},
    {"set-", "unit-controls"},
    {"unshard-unknown-", "unit-controls"},
    {"unshard-while-", "unit-controls"},
    {"reshard-unknown-", "unit-controls"},
    {"reshard-while-", "unit-controls"},
    {"reshard-in-window", "unit-controls"},
    {"reshard-kept", "unit-controls"},
    {"step-with-partials", "partial-replicas"},
    {"unknown-buffer-dtype", NULL},
    {"unknown-buffer", "buffers"},
    {"backward-step-", "step-in-backward"},
    {"assign-of-ignored", "ignored"},
    {"deferred-save", "save-sharded"},
    {"deferred-unshard-all", "unshard-all"},
    {"deferred-unshard", "unit-controls"},
    {"deferred-summon", "summon"},
    {"deferred-", "deferred"},
    {"shard-values", "deferred"},
    {"assign-", "assign"},
    {"summon-", "summon"},
    {"send-", "send-values"},
};

/* NULL: of every engine. */
static const char *claim_of_call(uint32_t call)
{
    for (uint32_t i = 0; i < sizeof(claim_of_word) / sizeof(claim_of_word[0]);
         i++) {
        if (begins(script_calls[call].name, claim_of_word[i].begins)) {
            return claim_of_word[i].claim;
        }
    }
    return NULL;
}

static const char *const form_claims[] = {[FSDP_SAVE_FULL] = "save-full",
                                          [FSDP_SAVE_SHARDED] = "save-sharded",
                                          [FSDP_SAVE_LOCAL] = "save-local"};

/* The claim that makes the call legal, if the engine has that claim; without it
 * the call must be refused. NULL: the call must be refused. */
static const char *allowed_by(const struct script_action *a,
                              const char *const *claims)
{
    const char *claim =
        a->verb == SCRIPT_WRONG ? script_calls[a->call].allowed_by : NULL;

    return claim && has(claims, claim) ? claim : NULL;
}

static const char *claim_of_knob(const struct script_action *a)
{
    return script_sets_factor(a)             ? "factor-controls"
           : a->knob == FSDP_KNOB_ALL_REDUCE ? "partial-replicas"
                                             : "unit-controls";
}

/* The claim that this kind of action belongs to; NULL: none. */
static const char *claim_of_verb(const struct script_action *a)
{
    switch (a->verb) {
    case SCRIPT_EVAL:
        return "eval";
    case SCRIPT_CLIP:
        return "clip";
    case SCRIPT_SUMMON:
    case SCRIPT_UNSHARD:
    case SCRIPT_RESHARD:
        return "unshard-all";
    case SCRIPT_SAVE:
        return form_claims[a->form];
    case SCRIPT_LOAD:
        return a->lenient ? "lenient-load" : "load";
    case SCRIPT_SET:
        return claim_of_knob(a);
    case SCRIPT_UNSHARD_UNIT:
    case SCRIPT_RESHARD_UNIT:
        return "unit-controls";
    case SCRIPT_FREEZE:
    case SCRIPT_THAW:
        return "thaw";
    case SCRIPT_BACKWARD_STEP:
        return "step-in-backward";
    case SCRIPT_ASSIGN:
        return "assign";
    case SCRIPT_SUMMON_SOME:
        return "summon";
    case SCRIPT_SEND:
        return "send-values";
    case SCRIPT_WRONG:
        return claim_of_call(a->call);
    default:
        return NULL;
    }
}

static const char *claim_of_inside(const struct script *s,
                                   const struct script_action *a, uint32_t i)
{
    const struct script_inside *in = &s->inside[a->first_inside + i];

    if (in->by_hand != 0) {
        return "unit-controls";
    }
    if (in->sync == SCRIPT_SYNC_UNSAID) {
        return claim_of_call(in->call);
    }
    return in->sync == SCRIPT_SYNC_OFF ? "no-sync" : NULL;
}

/* ---- What a script needs ---- */

static const char *lacking(const char *claim, const char *const *claims)
{
    return claim && !has(claims, claim) ? claim : NULL;
}

static const char *case_lacks(const struct run_case *c,
                              const char *const *claims)
{
    const char *list[CASE_MAX_CLAIMS];
    uint32_t n = case_claims(c, list);

    for (uint32_t i = 0; i < n; i++) {
        if (!has(claims, list[i])) {
            return list[i];
        }
    }
    return NULL;
}

static const char *world_lacks(const struct script *s,
                               const struct script_action *a,
                               const char *const *claims)
{
    struct run_case c;

    if (a->verb != SCRIPT_ANEW || !s->has_case) {
        return NULL;
    }
    script_case_in(&s->c, &a->world, &c);
    return case_lacks(&c, claims);
}

/* Whether the action sets a unit not to be reduced. */
static bool unsyncs(const struct script_action *a)
{
    return a->verb == SCRIPT_SET && a->knob == FSDP_KNOB_GRADIENT_SYNC &&
           a->value == 0.0f;
}

static const char *action_lacks(const struct script *s,
                                const struct script_action *a,
                                const char *const *claims)
{
    const char *claim = lacking(claim_of_verb(a), claims);

    if (allowed_by(a, claims)) {
        return allowed_by(a, claims);
    }
    for (uint32_t i = 0; i < a->n_inside && !claim; i++) {
        claim = lacking(claim_of_inside(s, a, i), claims);
    }
    if (!claim && a->ending == SCRIPT_CANCELLED) {
        claim = lacking("cancel", claims);
    }
    if (!claim && a->what != 0) {
        claim = lacking("save-parts", claims);
    }
    if (!claim && a->dtype != 0) {
        claim = lacking("save-dtype", claims);
    }
    if (!claim && (a->sync == SCRIPT_SYNC_OFF || unsyncs(a))) {
        claim = lacking("no-sync", claims);
    }
    return claim ? claim : world_lacks(s, a, claims);
}

const char *script_unclaimed(const struct script *s, const char *const *claims)
{
    const char *claim = s->has_case ? case_lacks(&s->c, claims) : NULL;

    if (!claim && s->groups > 1) {
        claim = lacking("groups", claims);
    }
    if (!claim && script_has_own_numbers(s)) {
        claim = lacking("groups-betas", claims);
    }
    if (!claim && s->deferred) {
        claim = lacking("deferred", claims);
    }
    if (!claim && s->rank0) {
        claim = lacking("rank0-initial", claims);
    }
    if (!claim && s->scale.said) {
        claim = lacking("loss-scale", claims);
    }
    for (uint32_t i = 0; i < s->n_actions && !claim; i++) {
        claim = action_lacks(s, &s->action[i], claims);
    }
    return claim;
}

/* ---- What is left for an engine ---- */

/* The choices of the header that become plain if the engine lacks a claim that
 * its case needs. */
static const struct {
    const char *claim;
    uint32_t plain;
} choices[] = {
    {"shard-grad-op", SCRIPT_PLAIN_STRATEGY},
    {"no-shard", SCRIPT_PLAIN_STRATEGY},
    {"hybrid-shard", SCRIPT_PLAIN_STRATEGY},
    {"hybrid-shard-zero2", SCRIPT_PLAIN_STRATEGY},
    {"fold-ring", SCRIPT_PLAIN_FOLD},
    {"fold-tree", SCRIPT_PLAIN_FOLD},
    {"per-parameter", SCRIPT_PLAIN_LAYOUT},
    {"momentum", SCRIPT_PLAIN_OPTIMIZER},
    {"adamw", SCRIPT_PLAIN_OPTIMIZER},
    {"keep-root", SCRIPT_PLAIN_KEEP_ROOT},
    {"prefetch", SCRIPT_PLAIN_AHEAD},
    {"bf16", SCRIPT_PLAIN_PRECISION},
    {"fp16", SCRIPT_PLAIN_PRECISION},
    {"sum-f32", SCRIPT_PLAIN_PRECISION},
    {"recompute", SCRIPT_PLAIN_RECOMPUTE},
    {"frozen", SCRIPT_PLAIN_FROZEN},
    {"unit-factors", SCRIPT_PLAIN_FACTORS},
    {"shared", SCRIPT_PLAIN_TIES},
    {"parameter-units", SCRIPT_PLAIN_WRAP | SCRIPT_PLAIN_UNITS},
    {"ignored", SCRIPT_PLAIN_UNITS},
    {"buffers", SCRIPT_PLAIN_MODEL},
    {"offload", SCRIPT_PLAIN_OFFLOAD},
};

static uint32_t plain_choice(const char *claim)
{
    for (uint32_t i = 0; i < sizeof(choices) / sizeof(choices[0]); i++) {
        if (strcmp(choices[i].claim, claim) == 0) {
            return choices[i].plain;
        }
    }
    return 0;
}

/* Whether the engine cannot give values to lives that begin without any: as
 * nothing was saved by then, they must be assigned. */
static bool lacks_values_for(const struct script *s, const char *const *claims)
{
    return s->deferred
               ? lacking("deferred", claims) || lacking("assign", claims)
               : s->rank0 && lacking("rank0-initial", claims);
}

static uint32_t plain_for(const struct script *s, const char *const *claims)
{
    const char *list[CASE_MAX_CLAIMS];
    const uint32_t n = case_claims(&s->c, list);
    uint32_t plain = 0;

    for (uint32_t i = 0; i < n; i++) {
        plain |= lacking(list[i], claims) ? plain_choice(list[i]) : 0;
    }
    /* Units of a random graph may each reshard in another way. */
    plain |= strcmp(s->c.workload, "graph") != 0 || has(claims, "shard-grad-op")
                 ? 0
                 : SCRIPT_PLAIN_MODEL;
    plain |= has(claims, "groups") ? 0 : SCRIPT_PLAIN_GROUPS;
    plain |= has(claims, "groups-betas") ? 0 : SCRIPT_PLAIN_SAME;
    plain |= has(claims, "loss-scale") ? 0 : SCRIPT_PLAIN_SCALE;
    plain |= has(claims, "no-sync") ? 0 : SCRIPT_PLAIN_REDUCED;
    plain |= lacks_values_for(s, claims) ? SCRIPT_PLAIN_VALUES : 0;
    return plain;
}

/* Sets by how much the action must say less; false: it cannot, and must go. */
static bool less_for(const struct script *s, const struct script_action *a,
                     const char *const *claims, uint8_t *less)
{
    uint32_t bits = 0;

    if (a->verb == SCRIPT_SAVE) {
        bits |= a->what && !has(claims, "save-parts") ? SCRIPT_LESS_PARTS : 0;
        bits |= a->dtype && !has(claims, "save-dtype") ? SCRIPT_LESS_DTYPE : 0;
    }
    if (a->verb == SCRIPT_SAVE && lacking(form_claims[a->form], claims)) {
        *less = (uint8_t)(bits | SCRIPT_LESS_FORM);
        return has(claims, "save-sharded");
    }
    if (a->verb == SCRIPT_LOAD && a->lenient && !has(claims, "lenient-load")) {
        *less = SCRIPT_LESS_LENIENT;
        return has(claims, "load");
    }
    if (lacking(claim_of_verb(a), claims) || allowed_by(a, claims)) {
        return false;
    }
    for (uint32_t i = 0; i < a->n_inside; i++) {
        if (lacking(claim_of_inside(s, a, i), claims)) {
            bits |= i == 0 ? SCRIPT_LESS_FIRST : SCRIPT_LESS_SECOND;
        }
    }
    if (a->ending == SCRIPT_CANCELLED && !has(claims, "cancel")) {
        bits |= SCRIPT_LESS_ENDING;
    }
    if (world_lacks(s, a, claims)) {
        bits |= SCRIPT_LESS_WORLD;
    }
    *less = (uint8_t)bits;
    return true;
}

int script_project(const struct script *drawn, const char *const *claims,
                   struct script_mask *mask, struct fsdp_error *error)
{
    const char *claim;
    struct script left;
    struct script_mask m;
    int status;

    script_mask_all(drawn, &m);
    m.plain = plain_for(drawn, claims);
    for (uint32_t i = 0; i < drawn->n_actions; i++) {
        if (!less_for(drawn, &drawn->action[i], claims, &m.less[i])) {
            m.actions &= ~(1ull << i);
        }
    }
    status = script_masked(drawn, &m, &left, mask, error);
    claim = status == FSDP_OK ? script_unclaimed(&left, claims) : NULL;
    script_release(&left);
    if (claim) {
        *error = (struct fsdp_error){.status = FSDP_ERR_UNSUPPORTED,
                                     .where = "script"};
        snprintf(error->message, sizeof(error->message),
                 "what is left of a script needs the claim %s", claim);
        return FSDP_ERR_UNSUPPORTED;
    }
    return status;
}

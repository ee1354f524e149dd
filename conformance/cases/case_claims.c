/* SPDX-License-Identifier: Apache-2.0 */
/*
 * case_claims.c - from a case to the capabilities that it needs. The strings
 * are those of engine.h and are written out here: they are a contract with
 * engines, while the names in ids are the suite's own.
 */
#include "cases/case_claims.h"

const char *const core_claims[] = {"flat", "full-shard", "sgd", "fold-rank",
                                   NULL};

static const char *of(const char *const *names, uint32_t n, uint32_t value)
{
    return value < n ? names[value] : "unknown";
}

static const char *of_scenario(uint32_t scenario)
{
    switch (scenario) {
    case CASE_EVAL:
        return "eval";
    case CASE_CANCEL:
        return "cancel";
    case CASE_SUMMON:
        return "unshard-all";
    case CASE_CLIP:
        return "clip";
    case CASE_GROUPS:
        return "groups";
    default:
        return NULL;
    }
}

static bool leaves_unreduced(const struct run_case *c)
{
    for (uint32_t b = 0; b < c->microbatches && b < CASE_MAX_MICROBATCHES;
         b++) {
        if (c->sync[b] == 0) {
            return true;
        }
    }
    return false;
}

/* What a scenario that resumes needs beside `load`. */
static const char *of_save(uint32_t scenario)
{
    switch (scenario) {
    case CASE_RESUME_FULL:
        return "save-full";
    case CASE_RESUME_LOCAL:
        return "save-local";
    default:
        return "save-sharded";
    }
}

uint32_t case_claims(const struct run_case *c,
                     const char *list[CASE_MAX_CLAIMS])
{
    static const char *const layouts[] = {"flat", "per-parameter"};
    static const char *const folds[] = {"fold-rank", "fold-ring", "fold-tree"};
    static const char *const optimizers[] = {"sgd", "momentum", "adamw"};
    static const char *const strategies[CASE_N_STRATEGIES] = {
        "full-shard", "shard-grad-op", "no-shard", "hybrid-shard",
        "hybrid-shard-zero2"};
    struct run_case saver;
    uint32_t n = 0;

    list[n++] = of(layouts, 2, c->layout);
    if (case_saver(c, &saver) && saver.layout != c->layout) {
        list[n++] = of(layouts, 2, saver.layout);
    }
    list[n++] = of(strategies, CASE_N_STRATEGIES, c->strategy);
    list[n++] = of(folds, 3, c->fold);
    list[n++] = of(optimizers, 3, c->optimizer);
    if (c->keep_root != 0) {
        list[n++] = "keep-root";
    }
    if (leaves_unreduced(c)) {
        list[n++] = "no-sync";
    }
    if (of_scenario(c->scenario) != NULL) {
        list[n++] = of_scenario(c->scenario);
    }
    if (case_resumes(c)) {
        list[n++] = of_save(c->scenario);
        list[n++] = "load";
    }
    if (c->prefetch_forward != 0 || c->prefetch_backward != 0 ||
        c->reduces_in_flight != 0) {
        list[n++] = "prefetch";
    }
    return n;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mutant.h - an engine that is wrong in one way, so that the suite proves
 * that it notices. A mutant wraps copies of env and engine of a correct one;
 * it lists exactly the requirements that must fail as first causes. What
 * follows from those is blocked; anything else that fails, or one of the list
 * that does not, is an error of the suite.
 *
 * One small file each; the table is generated from the folder.
 */
#ifndef FSDP_CTS_MUTANT_H
#define FSDP_CTS_MUTANT_H

#include "cases/case.h"

struct mutant {
    const char *name;     /* "no-average" */
    const char *text;     /* what is wrong, one sentence */
    const char *evidence; /* where it was seen: "X02: torchtune#2172" */
    const char *kills;    /* ids, separated by spaces, sorted */
    /* The cases that show it; the first `n_cases` of the manifest for which
     * `shows` is true are run (0 counts as 3). */
    bool (*shows)(const struct run_case *c);
    uint32_t n_cases;
    /* The engine that it makes wrong: one of the list. NULL: the one that the
     * command names, or the reference; it gets no case that runs ahead. */
    const char *engine;
    /* Changes the env and the engine that the driver gives out. Called on
     * every rank after open and before shard, with copies. What it needs to
     * remember is _Thread_local: a rank is a thread or a process. */
    void (*wrap)(struct fsdp_env *env, struct fsdp_engine *engine);
};

#define MUTANT(ident)                 \
    extern const struct mutant ident; \
    const struct mutant ident

/* Generated; NULL-ended, sorted by name. */
extern const struct mutant *const mutants[];

#endif

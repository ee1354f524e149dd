/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drawn.h - scripts that a seed draws are played by engines, a batch at a
 * time, and judged; the first one that fails is made smaller and shown.
 */
#ifndef FSDP_CTS_DRAWN_H
#define FSDP_CTS_DRAWN_H

#include "cli/play/trial.h"
#include "run/adapter_claims.h"
#include "script/script_mask.h"

enum {
    DRAWN_MAX_CLAIMS = 255,
    DRAWN_BATCH = 50 /* scripts */
};

/* An engine, and what came of its scripts. */
struct drawn_engine {
    const char *name;  /* or path */
    char claims[4096]; /* separated by spaces; as a worker said */
    bool plays;        /* it claims `scripts` */
    uint32_t played, failed;
    uint32_t left_out; /* of which nothing is left for what it claims */
    char reason[256];  /* why some have no verdict; else empty */
    /* The first that fails: from which seed, what is kept of it, how. */
    uint64_t seed;
    struct script_mask mask;
    const struct requirement *requirement;
    uint32_t verb;           /* of the action where; SCRIPT_N_VERBS: nowhere */
    struct judge_drawn said; /* drawn_beside: for the verdict */
};

struct drawn {
    const struct arguments *a;
    const struct text *text;
    uint64_t seed;   /* the first */
    uint32_t least;  /* scripts */
    double seconds;  /* more of them until these have passed */
    uint32_t shrink; /* seconds for making a failing one smaller */
    struct drawn_engine engine[ARGUMENTS_MAX];
    uint32_t n_engines;
    struct adapter_claims adapter; /* with --adapter, the one engine */
};

/* Asks the engines what they claim, by sharding a small model. OK, or as
 * supervise. */
int drawn_ask(struct drawn *d, struct fsdp_error *error);
/* What a worker said of engine i. */
void drawn_claims(struct drawn *d, uint32_t i, const char *claims);
/* Plays and judges; results are in d->engine. As supervise. */
int drawn_play(struct drawn *d, struct fsdp_error *error);
/* Says what came of it; of the first that fails, made smaller, id and text. */
void drawn_print(const struct drawn *d);
/* The second part of it alone. */
void drawn_print_failing(const struct drawn *d);
/* The exit code of all of it. */
int drawn_code(const struct drawn *d);

/* drawn_adapter.c, of a run with --adapter: what it claims, as drawn_ask; in a
 * folder that exists. */
int drawn_ask_adapter(struct drawn *d, const char *records,
                      struct fsdp_error *error);
/* Takes from a mask what the adapter cannot be asked, beside what
 * script_project takes. False: nothing is left. */
bool drawn_left_for_adapter(const struct drawn *d, const struct script *drawn,
                            struct script_mask *m);
bool drawn_is_claimed(const struct drawn *d, const struct run_case *c);

/* drawn_run.c: `run --scripts N`; an exit code. */
int drawn_alone(const struct arguments *a, const struct text *text);
/* Plays scripts beside the cases of the manifest, and says of each engine what
 * came of it; prints what fails. Where that breaks off, a line on stderr says
 * why, the scripts have no verdict, and the cases have theirs. 0, or an exit
 * code after a line on stderr. The caller frees *out. */
int drawn_beside(const struct arguments *a, const struct text *text,
                 struct drawn **out);

/* drawn_shrink.c: goes on from e->mask, as long as what is left fails by the
 * same requirement at an action of the same verb. */
void drawn_shrink(const struct drawn *d, struct drawn_engine *e);
/* The verb of the action that a failure is about. */
uint32_t drawn_verb_of(const struct run_case *c, const struct judge_item *item);
/* A case that plays what is kept; *out is to be zeroed. False: nothing is
 * kept, or there is no memory. */
bool drawn_case(const struct script *drawn, const struct script_mask *mask,
                struct run_case *out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drawn.h - engines play scripts that a seed draws, a batch at a time, and are
 * judged; the first script that fails is made smaller and shown.
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

/* An engine, and the outcome of its scripts. */
struct drawn_engine {
    const char *name;  /* or path */
    char claims[4096]; /* separated by spaces; as a worker reported them */
    bool plays;        /* the engine claims `scripts` */
    uint32_t played, failed;
    uint32_t left_out; /* scripts of which nothing is left after what it does
                          not claim was taken out */
    char reason[256];  /* why some have no verdict; else empty */
    /* The first script that fails: its seed, the part of it that is kept, and
     * how it fails. */
    uint64_t seed;
    struct script_mask mask;
    const struct requirement *requirement;
    uint32_t verb;           /* of the action at which it fails; SCRIPT_N_VERBS:
                                at none */
    struct judge_drawn said; /* set by drawn_beside, for the verdict */
};

struct drawn {
    const struct arguments *a;
    const struct text *text;
    uint64_t seed;   /* the seed of the first script */
    uint32_t least;  /* scripts */
    double seconds;  /* more scripts are played until so many seconds have
                        passed */
    uint32_t shrink; /* seconds for making a failing one smaller */
    struct drawn_engine engine[ARGUMENTS_MAX];
    uint32_t n_engines;
    struct adapter_claims adapter; /* with --adapter: the claims of the only
                                      engine */
};

/* Asks the engines what they claim, by sharding a small model. OK, or as
 * supervise. */
int drawn_ask(struct drawn *d, struct fsdp_error *error);
/* Notes the claims of engine i, as a worker reported them. */
void drawn_claims(struct drawn *d, uint32_t i, const char *claims);
/* Plays and judges; results are in d->engine. As supervise. */
int drawn_play(struct drawn *d, struct fsdp_error *error);
/* Prints the outcome; of the first script that fails, made smaller, id and
 * text. */
void drawn_print(const struct drawn *d);
/* Prints the second part of that alone. */
void drawn_print_failing(const struct drawn *d);
/* The exit code for all engines. */
int drawn_code(const struct drawn *d);

/* drawn_adapter.c, for a run with --adapter: asks it what it claims, as
 * drawn_ask, in a folder that exists. */
int drawn_ask_adapter(struct drawn *d, const char *records,
                      struct fsdp_error *error);
/* Takes from a mask all that the adapter cannot play, beside what
 * script_project takes. False: nothing is left. */
bool drawn_left_for_adapter(const struct drawn *d, const struct script *drawn,
                            struct script_mask *m);
bool drawn_is_claimed(const struct drawn *d, const struct run_case *c);

/* drawn_run.c: `run --scripts N`; an exit code. */
int drawn_alone(const struct arguments *a, const struct text *text);
/* Plays scripts beside the cases of the manifest, and says for each engine how
 * that ended; prints what fails. If it breaks off, a line on stderr says why,
 * and only the cases have a verdict. 0, or an exit code after a line on stderr.
 * The caller frees *out. */
int drawn_beside(const struct arguments *a, const struct text *text,
                 struct drawn **out);

/* drawn_shrink.c: makes the script smaller, beginning with e->mask, as long as
 * what is left fails by the same requirement at an action of the same verb. */
void drawn_shrink(const struct drawn *d, struct drawn_engine *e);
/* The verb of the action that a failure is about. */
uint32_t drawn_verb_of(const struct run_case *c, const struct judge_item *item);
/* Makes a case that plays the part that the mask keeps; *out is to be zeroed.
 * False: nothing is kept, or there is no memory. */
bool drawn_case(const struct script *drawn, const struct script_mask *mask,
                struct run_case *out);

#endif

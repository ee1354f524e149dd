/* SPDX-License-Identifier: Apache-2.0 */
/* judge_internal.h - what the files judge*.c share. */
#ifndef FSDP_CTS_JUDGE_INTERNAL_H
#define FSDP_CTS_JUDGE_INTERNAL_H

#include "judge/judge.h"

struct judge {
    const struct judge_input *in;
    struct judge_result *out;
    bool *asked; /* [n_requirements]: it is reported, or a reported one needs it
                  */
    /* why there is no record to say which engine is judged */
    struct fsdp_error unread;
    /* Indices of REQUIREMENT_RUN and REQUIREMENT_COMPLETES; n_requirements: the
     * table lacks it. */
    uint32_t run, completes;
};

/* What the judge has of the case that it is judging. */
struct judge_view {
    struct judge_case *summary;
    struct judge_model model;
    struct expect expect;
    bool described, expected;
    const struct record *record;
    uint32_t ended; /* how the ranks ended: PASS, ERROR or TIMEOUT */
    char ended_note[320];
};

/* Processor time of this thread; 0 if the result is not timed, because the
 * system call may take longer than a check. */
double judge_seconds(const struct judge *j);

/* judge_verdict.c: if r is sampled, and larger than the sampled records before
 * it, notes how many of its ranks show whole parameters. */
void judge_note_sample(struct judge_result *out, const struct record *r);
/* The same for the record of a case whose last collectives were counted without
 * saying what was sent in them. */
void judge_note_followed(struct judge_result *out, const struct record *r);
/* Whether q puts together what this sampled record lacks. The result then names
 * q once, as far as there is room. */
bool judge_is_unasked(struct judge_result *out, const struct requirement *q,
                      const struct record *r);

/* judge_verdict.c: sees how the ranks ended. Sets v->ended and the summary's
 * reason. */
void judge_ends(struct judge_view *v);
/* Whether a rank was ended by SIGKILL. No fault of a program brings that about:
 * the system sends it when memory is short. (A rank that the suite ended with
 * it has timed out instead.) */
bool judge_killed_from_outside(const struct record *r);

/* judge_case.c: fills out->cases[index] and its items. NOMEM. */
int judge_one_case(struct judge *j, uint32_t index);
/* judge_nowhere is a finding without a place. judge_keep puts a finding into
 * the item, with the names of its place. NOMEM. */
struct finding judge_nowhere(void);
int judge_keep(const struct judge_view *v, const struct finding *f,
               struct judge_item *item);

/* judge_causes.c: the step in which an item failed; -1: in no step. */
int64_t judge_step_of(const struct judge_item *item);
/* Makes the item blocked by requirement `by`, and forgets what it found. */
void judge_block(struct judge_item *item, uint32_t by);
/* Settles what came of what in case c. If a failure needs something that failed
 * only in a later step, it is the cause of that one, and of the other failures
 * before that one. */
void judge_settle_causes(const struct judge_result *r, uint32_t c);
/* For the whole run: blocks the requirements beside_training (requirement.h) if
 * the engine is wrong without what they are about. */
void judge_settle_beside_training(const struct judge_result *r);
/* The same for requirements that are general (requirement.h). */
void judge_settle_general(const struct judge_result *r);

/* judge_figures.c: fills the few numbers of the summary. */
void judge_summarise(struct judge_view *v);
/* The loss number i, folded over ranks; false: some rank has none. The record
 * of an unsharded run may have the losses of all its ranks as one rank, folded
 * already. */
bool judge_fold_loss(const struct expect *e, const struct record *r, uint32_t i,
                     float *out);
/* Fills the summary's figures, if the ranks ended well.
 * NOMEM. */
int judge_measure(struct judge_view *v);
/* Fills the timeline of one rank in f, whose members are 0. The caller releases
 * f whatever is returned. NOMEM. */
int judge_timeline(const struct expect *e, const struct record_rank *r,
                   struct judge_figures *f);
void judge_figures_release(struct judge_figures *f);

/* judge.c: for every item that passed, spoils copies of the record. If the
 * requirement does not notice, the item is INCOMPLETE. NOMEM. */
int judge_prove(struct judge *j, const struct judge_view *v,
                struct judge_item *items);

/* judge_verdict.c: counts outcomes of reported requirements, and fills levels
 * and the verdict. */
void judge_conclude(struct judge_result *r);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* judge_internal.h - shared by judge*.c, and by nobody else. */
#ifndef FSDP_CTS_JUDGE_INTERNAL_H
#define FSDP_CTS_JUDGE_INTERNAL_H

#include "judge/judge.h"

struct judge {
    const struct judge_input *in;
    struct judge_result *out;
    bool *asked; /* those that are reported, and what they wait for */
    struct fsdp_error unread; /* why no record says who is judged */
    /* Indices of REQUIREMENT_RUN and _COMPLETES; n_requirements: none. */
    uint32_t run, completes;
};

/* What is at hand while one case is judged. */
struct judge_view {
    struct judge_case *summary;
    struct judge_model model;
    struct expect expect;
    bool described, expected;
    const struct record *record;
    uint32_t ended; /* PASS, or ERROR or TIMEOUT: how the ranks ended */
    char ended_note[320];
};

/* Processor time of this thread; 0 where nobody asks: it is a call of the
 * system, and a check may take less. */
double judge_seconds(const struct judge *j);

/* judge_verdict.c. Of the records that are sampled, how many ranks the largest
 * has. */
void judge_note_sample(struct judge_result *out, const struct record *r);
/* The same of one whose last collectives are counted, and not looked at. */
void judge_note_followed(struct judge_result *out, const struct record *r);
/* Whether a sampled record lacks what the requirement puts together; the
 * result names each such requirement once, as far as there is room. */
bool judge_is_unasked(struct judge_result *out, const struct requirement *q,
                      const struct record *r);

/* judge_verdict.c: how ranks ended. Sets v->ended and the summary's reason. */
void judge_ends(struct judge_view *v);
/* Whether a rank was ended by SIGKILL, which no fault of a program's brings
 * about: the system sends it when memory is short. (What the suite itself ends
 * that way has timed out.) */
bool judge_killed_from_outside(const struct record *r);

/* judge_case.c: fills out->cases[index] and its items. NOMEM. */
int judge_one_case(struct judge *j, uint32_t index);
/* A finding without a place; what an item says, kept with the names of its
 * place. NOMEM. */
struct finding judge_nowhere(void);
int judge_keep(const struct judge_view *v, const struct finding *f,
               struct judge_item *item);

/* judge_causes.c. The step in which an item failed; -1: in none. */
int64_t judge_step_of(const struct judge_item *item);
/* It is blocked by requirement `by`; what it said itself is forgotten. */
void judge_block(struct judge_item *item, uint32_t by);
/* Of all that failed in case c: what needs something that failed in a later
 * step is the cause of that, and of what else failed before it. */
void judge_settle_causes(const struct judge_result *r, uint32_t c);
/* Of the whole run: what asks for something beside plain training is blocked
 * where the engine is wrong without it. */
void judge_settle_beside_training(const struct judge_result *r);
/* The same of requirements that are general (requirement.h). */
void judge_settle_general(const struct judge_result *r);

/* judge_figures.c: fills the summary's few numbers. */
void judge_summarise(struct judge_view *v);
/* The folded loss number i; false: some rank has none. An unsharded run may
 * have all of its ranks in one record of one rank, folded already. */
bool judge_fold_loss(const struct expect *e, const struct record *r, uint32_t i,
                     float *out);
/* Fills the summary's figures, if the ranks ended well.
 * NOMEM. */
int judge_measure(struct judge_view *v);
/* Fills in a step of one rank, of figures that are 0; they are to be released
 * in any case. NOMEM. */
int judge_timeline(const struct expect *e, const struct record_rank *r,
                   struct judge_figures *f);
void judge_figures_release(struct judge_figures *f);

/* judge.c: spoils copies of the record for every item that passed; where
 * that is not noticed the item is INCOMPLETE. NOMEM. */
int judge_prove(struct judge *j, const struct judge_view *v,
                struct judge_item *items);

/* judge_verdict.c: counts, levels and the verdict, of what is reported. */
void judge_conclude(struct judge_result *r);

#endif

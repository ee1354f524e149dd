/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explanations.h - the failures of a submission: whose each is, and why. Every
 * failure must be explained, once, and nothing may be explained that does not
 * fail, so that a page made of this passes over no failure, and keeps none that
 * is gone.
 */
#ifndef FSDP_CTS_EXPLANATIONS_H
#define FSDP_CTS_EXPLANATIONS_H

#include "cases/case.h"
#include "judge/judge.h"
#include "record/record_fields.h"

enum explanation_whose {
    EXPLANATION_THEIRS = 0,
    EXPLANATION_BY_DESIGN = 1, /* theirs, and intended */
    EXPLANATION_OURS = 2,
    EXPLANATION_OPEN = 3, /* not known yet */
    EXPLANATION_N = 4
};
const char *explanation_whose_name(uint32_t whose); /* as in the file */
const char *explanation_whose_text(uint32_t whose); /* as people read it */

struct explanation {
    char requirement[64];
    char cases[CASE_ID_BYTES]; /* a shell pattern */
    uint32_t whose;
    char why[2048]; /* Markdown */
    uint32_t n;     /* how many failures it explains, after
                     * explanations_match */
};

struct explanations {
    uint32_t n;
    struct explanation *of;
};
void explanations_release(struct explanations *x); /* any state */

/* FORMAT: the sentence names the field. */
extern const struct record_table explanations_table;
int explanations_parse(const char *text, size_t bytes, const char *file,
                       struct explanations *out, struct fsdp_error *error);

/* Whether an outcome must be explained: fail, error, timeout, incomplete. A
 * blocked requirement follows from one of these. */
bool explanations_wanted(uint32_t outcome);

/* Counts the failures that each explanation explains. FORMAT: a failure without
 * an explanation, or with two; an explanation without a failure. */
int explanations_match(struct explanations *x, const struct judge_result *r,
                       struct fsdp_error *error);

#endif

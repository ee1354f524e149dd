/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own_judge.h - from records of a user's own model to a verdict.
 *
 * Each requirement that holds is checked again on records that were damaged in
 * one place, and has to notice; if one does not, there is no verdict.
 */
#ifndef FSDP_CTS_OWN_JUDGE_H
#define FSDP_CTS_OWN_JUDGE_H

#include "tools/check/own_requirement.h"

enum own_outcome {
    OWN_PASS = 0,
    OWN_FAIL = 1,
    OWN_BLOCKED = 2,        /* the records lack what it compares */
    OWN_NOT_APPLICABLE = 3, /* it does not apply to such a model */
    OWN_N_OUTCOMES = 4,
};
const char *own_outcome_name(uint32_t outcome);

struct own_item {
    uint32_t outcome;
    bool damaged; /* of one that holds: there was something to damage */
    bool proved;  /* and it noticed the damage */
    struct own_finding finding;
};

enum own_verdict {
    OWN_CONFORMANT = 0, /* the numbers are exit codes */
    OWN_NON_CONFORMANT = 1,
    OWN_UNDECIDED = 2,
};
const char *own_verdict_name(uint32_t verdict);

/* How much was looked at. */
struct own_scope {
    uint64_t elements;  /* of the model */
    uint64_t tensors;   /* compared in every bit, all ranks */
    uint64_t added;     /* elements of gradients that were added up again */
    uint64_t added_all; /* elements of the gradients that these belong to */
};

struct own_result {
    struct own_item *item; /* [own_n_requirements] */
    uint32_t count[OWN_N_OUTCOMES], damaged, proved;
    uint32_t first; /* the failure to look at first; UINT32_MAX: none */
    struct own_scope scope;
    uint32_t verdict;
};

/* Judges the records, which are damaged and repaired meanwhile. NOMEM. */
int own_judge(struct own_set *s, struct own_result *out);
void own_result_release(struct own_result *r);

/* own_report.c: the result for people, and as JSON. `name` is that of the
 * model. False: out of memory, or the output cannot be written. */
void own_print(const struct own_set *s, const struct own_result *r,
               const char *name);
bool own_print_json(const struct own_set *s, const struct own_result *r,
                    const char *name);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare_checks.h - checks that requirements of several families share. A
 * requirement's row names the check and gives it data (requirement.h).
 */
#ifndef FSDP_CTS_COMPARE_CHECKS_H
#define FSDP_CTS_COMPARE_CHECKS_H

#include "judge/compare/compare.h"

#include <stddef.h>

/* For `raises`: the offset of a member of struct record_rank. */
#define COMPARE_OF_RANK(field) offsetof(struct record_rank, field)

/* `rank.holds` must be true for every rank. */
extern const struct requirement_check check_each_rank;
/* `part.holds` must be true for every part of a parameter that a rank owns by
 * the oracle, in the steps of `part.steps`. */
extern const struct requirement_check check_each_part;
/* A function for `part.holds`: all replicas have the same at the part's
 * stage. */
bool check_replicas(const struct expect *e, const struct record *r,
                    const struct compare_part *part, struct finding *f);
/* `step.holds` must be true for what each rank communicated in each step. */
extern const struct requirement_check check_each_step;
/* `collective.holds` must be true for each of these collectives. */
extern const struct requirement_check check_each_collective;
/* The number at `zero.at` must be 0 on every rank. */
extern const struct requirement_check check_zero;
/* Every rank must have answered every wrong call as `answers` say. */
extern const struct requirement_check check_answers;
/* In addition, each error's message must name the option, the parameter, the
 * unit (or its knob) or the buffer that was refused. The driver notes a message
 * that does not as `unnamed-option`, `unnamed-parameter`, `unnamed-unit` or
 * `unnamed-buffer`. */
extern const struct requirement_check check_answers_named;
/* Only that each message names what was refused, whichever call it was. */
extern const struct requirement_check check_named;
/* The losses must be those of the case that `change` makes of this one, if this
 * run has its record. */
extern const struct requirement_check check_curve_of;
/* The losses must be those of this case on one rank. */
extern const struct requirement_check check_curve_of_single;

/* For checks of a family: calls `holds` with the requirement for every rank. */
bool check_ranks(const struct requirement *q, const struct expect *e,
                 const struct record *r,
                 bool (*holds)(const struct requirement *q,
                               const struct expect *e,
                               const struct record_rank *rank, uint32_t k,
                               struct finding *f),
                 struct finding *f);

#endif

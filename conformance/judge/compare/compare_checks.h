/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare_checks.h - checks that requirements of several families share. A row
 * names one, and gives it its data (requirement.h).
 */
#ifndef FSDP_CTS_COMPARE_CHECKS_H
#define FSDP_CTS_COMPARE_CHECKS_H

#include "judge/compare/compare.h"

#include <stddef.h>

/* For `raises`: where something of a rank stands. */
#define COMPARE_OF_RANK(field) offsetof(struct record_rank, field)

/* `rank` holds of every rank. */
extern const struct requirement_check check_each_rank;
/* `part` holds of every part of a parameter that the oracle gives to a rank,
 * in those steps. */
extern const struct requirement_check check_each_part;
/* For `part`: what replicas have at its stage is the same. */
bool check_replicas(const struct expect *e, const struct record *r,
                    const struct compare_part *part, struct finding *f);
/* `step` holds of what every rank communicated in every step. */
extern const struct requirement_check check_each_step;
/* `collective` holds of each of these collectives. */
extern const struct requirement_check check_each_collective;
/* The number at `zero` is 0 on every rank. */
extern const struct requirement_check check_zero;
/* Every rank answered every wrong call as `answers` want. */
extern const struct requirement_check check_answers;
/* And each message named the option, the parameter or the unit that was
 * refused: the driver notes those that did not, as `unnamed-option`,
 * `unnamed-parameter`, `unnamed-unit`. */
extern const struct requirement_check check_answers_named;
/* That alone, of whatever was refused. */
extern const struct requirement_check check_named;
/* The curve is that of the case that `change` makes of this one, where this
 * run has its record. */
extern const struct requirement_check check_curve_of;
/* The same, of this case on one rank. */
extern const struct requirement_check check_curve_of_single;

/* For checks of a family: calls `holds` with the row for every rank. */
bool check_ranks(const struct requirement *q, const struct expect *e,
                 const struct record *r,
                 bool (*holds)(const struct requirement *q,
                               const struct expect *e,
                               const struct record_rank *rank, uint32_t k,
                               struct finding *f),
                 struct finding *f);

#endif

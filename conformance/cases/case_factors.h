/* SPDX-License-Identifier: Apache-2.0 */
/*
 * case_factors.h - the axis `factors`: what gradients are divided by before and
 * after the fold, and parameter groups with betas, eps and momentum of their
 * own (docs/specification.md).
 */
#ifndef FSDP_CTS_CASE_FACTORS_H
#define FSDP_CTS_CASE_FACTORS_H

#include "cases/case.h"

/* The predivide factor of the options; 0: none is given. */
float case_predivide(const struct run_case *c);

/* The factors that a unit has of its own; each is 0 where the option holds.
 * False: no unit of the case has its own. */
struct case_unit_factors {
    float divide, predivide;
};
bool case_factors_of_unit(const struct run_case *c, uint32_t unit,
                          struct case_unit_factors *out);

/* The numbers that a parameter group has of its own. False: the case's groups
 * have none. */
struct case_numbers {
    float momentum, beta1, beta2, eps;
};
bool case_has_numbers(const struct run_case *c);
bool case_numbers_of_group(const struct run_case *c, uint32_t group,
                           struct case_numbers *out);

#endif

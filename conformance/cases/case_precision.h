/* SPDX-License-Identifier: Apache-2.0 */
/*
 * case_precision.h - the axis `precision`: which dtypes the units of a case
 * have (docs/specification.md, Mixed precision). A case that is not float32
 * sets every one of them, so that nobody's default is asked for; but under
 * `defaults` none that has a default, which is then NONE here.
 */
#ifndef FSDP_CTS_CASE_PRECISION_H
#define FSDP_CTS_CASE_PRECISION_H

#include "cases/case.h"

/* P, G, A, Rd and the sums' of a unit. Its buffers are in P; under `defaults`
 * nothing is said of them. */
struct case_dtypes {
    uint32_t param, grad, accumulate, reduce, sum;
};

/* Those of the options. */
struct case_dtypes case_dtypes(const struct run_case *c);
/* Whether units have dtypes of their own. */
bool case_has_units_dtypes(const struct run_case *c);
/* Those of a unit; true if it has its own. */
bool case_dtypes_of_unit(const struct run_case *c, uint32_t unit,
                         struct case_dtypes *out);
/* Whether any of a case's units is to use the dtype. */
bool case_uses_dtype(const struct run_case *c, uint32_t dtype);
/* What is said of buffers where parameters are in a dtype. */
uint32_t case_buffer_dtype(const struct run_case *c, uint32_t param);
/* Whether sums are float32 where the wire is not. */
bool case_sums_wide(const struct run_case *c);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * case_precision.h - the axis `precision`: which dtypes the units of a case
 * have (docs/specification.md, Mixed precision). A case that is not float32
 * gives every dtype, so that it does not depend on an engine's defaults. Only
 * under `defaults` does it leave out those that have a default; they are NONE
 * here.
 */
#ifndef FSDP_CTS_CASE_PRECISION_H
#define FSDP_CTS_CASE_PRECISION_H

#include "cases/case.h"

/* The dtypes P, G, A and Rd of a unit, and that of its sums. The unit's buffers
 * are in P; under `defaults` no dtype is given for them. */
struct case_dtypes {
    uint32_t param, grad, accumulate, reduce, sum;
};

/* The dtypes that the case's options give. */
struct case_dtypes case_dtypes(const struct run_case *c);
/* Whether units have dtypes of their own. */
bool case_has_units_dtypes(const struct run_case *c);
/* The dtypes of a unit; true if the unit gives its own. */
bool case_dtypes_of_unit(const struct run_case *c, uint32_t unit,
                         struct case_dtypes *out);
/* Whether any of a case's units is to use the dtype. */
bool case_uses_dtype(const struct run_case *c, uint32_t dtype);
/* The dtype that is given for buffers where parameters are in `param`. */
uint32_t case_buffer_dtype(const struct run_case *c, uint32_t param);
/* Whether sums are float32 where the wire is not. */
bool case_sums_wide(const struct run_case *c);

#endif

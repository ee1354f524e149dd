/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_equal.h - models that are made for a question: equal units.
 */
#ifndef FSDP_CTS_PLAN_EQUAL_H
#define FSDP_CTS_PLAN_EQUAL_H

#include "tools/plan/plan_bytes.h"
#include "tools/plan/plan_model.h"

/* A model of `elements` parameters in equal units, and a step of it by AdamW.
 * INVALID: the units do not divide the elements. */
int plan_equal_model(uint64_t elements, uint32_t units, struct plan_model *out,
                     struct fsdp_error *error);
struct plan_ask plan_ask_for(const struct plan_model *m, uint32_t ranks,
                             uint32_t strategy, uint32_t precision);
/* How much a strategy needs for a model of `elements` parameters in `units`
 * equal units, over K ranks, in 16 bits on the wire. The caller releases
 * *out. */
int plan_equal_units(uint64_t elements, uint32_t units, uint32_t ranks,
                     uint32_t strategy, struct plan_bytes *out,
                     struct fsdp_error *error);

#endif

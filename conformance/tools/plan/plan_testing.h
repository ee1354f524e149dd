/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_testing.h - the question that tests of plans ask: a testing model in
 * float32.
 */
#ifndef FSDP_CTS_PLAN_TESTING_H
#define FSDP_CTS_PLAN_TESTING_H

#include "judge/oracle/expect_testing.h"
#include "tools/plan/plan_bytes.h"

/* The model is borrowed. */
static inline struct plan_ask ask_for(const struct testing_model *t,
                                      const struct run_case *c)
{
    return (struct plan_ask){.c = *c, .model = &t->model, .units = &t->units};
}

#endif

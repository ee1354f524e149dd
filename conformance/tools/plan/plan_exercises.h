/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_exercises.h - the questions of the textbook ("PyTorch FSDP", chapter
 * 16.5) and the sizes that articles about FSDP name, answered by plan.
 */
#ifndef FSDP_CTS_PLAN_EXERCISES_H
#define FSDP_CTS_PLAN_EXERCISES_H

#include "tools/plan/plan_bytes.h"

/* Prints them. As plan_bytes_make. */
int plan_exercises(struct fsdp_error *error);

/* What a strategy needs of a model of `elements` parameters in `units` equal
 * units, over K ranks, in 16 bits on the wire. INVALID: the units do not
 * divide the elements. The caller releases *out. */
int plan_equal_units(uint64_t elements, uint32_t units, uint32_t ranks,
                     uint32_t strategy, struct plan_bytes *out,
                     struct fsdp_error *error);

/* Bytes of state for each parameter, as articles count them: everything that
 * rests, with 16 bit copies of parameters and gradients beside the float32
 * master and AdamW's two moments. */
enum {
    PLAN_STATE_PARAMETER = 2,
    PLAN_STATE_GRADIENT = 2,
    PLAN_STATE_MASTER = 4,
    PLAN_STATE_MOMENTS = 8,
    PLAN_STATE_OPTIMIZER = PLAN_STATE_MASTER + PLAN_STATE_MOMENTS,
    PLAN_STATE =
        PLAN_STATE_PARAMETER + PLAN_STATE_GRADIENT + PLAN_STATE_OPTIMIZER,
};

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_exercises.h - the questions of the textbook ("PyTorch FSDP", chapter
 * 16.5) and the sizes that articles about FSDP name, answered by plan.
 */
#ifndef FSDP_CTS_PLAN_EXERCISES_H
#define FSDP_CTS_PLAN_EXERCISES_H

#include <fsdp/status.h>

/* Prints the answers. INVALID, NOMEM. */
int plan_exercises(struct fsdp_error *error);

/* Bytes of state for each parameter, as articles count them: all values at
 * rest, with 16 bit copies of parameters and gradients beside the float32
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

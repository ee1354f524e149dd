/* SPDX-License-Identifier: Apache-2.0 */
/*
 * adapter_case.h - what a program outside of the suite needs to play a case:
 * its fields, its model, the initial weights and every batch, in files.
 */
#ifndef FSDP_CTS_ADAPTER_CASE_H
#define FSDP_CTS_ADAPTER_CASE_H

#include "cases/case.h"
#include "models/text.h"

/*
 * Makes the folder and writes into it
 *
 *     case.json             the case, its modules, units and parameters
 *     weights.safetensors   the initial weights, by name
 *     batches.safetensors   the samples, "STEP.MICROBATCH.RANK.NAME"; of a
 *                           step whose samples are those of the step before
 *                           they are not repeated
 *
 * INVALID: no such model. IO, NOMEM.
 */
int adapter_case_write(const char *folder, const struct run_case *c,
                       const struct text *text, struct fsdp_error *error);

#endif

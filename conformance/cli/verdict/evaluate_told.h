/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evaluate_told.h - reads what ranks printed in cases that failed, and where
 * they stood, from the files beside the records that were judged
 * (run/worker/told.h).
 */
#ifndef FSDP_CTS_EVALUATE_TOLD_H
#define FSDP_CTS_EVALUATE_TOLD_H

#include "cli/verdict/evaluate.h"

/* Sets judge_case.told. It stays empty if the file is missing or cannot be
 * read. */
void evaluate_told(const struct evaluate_input *e,
                   const struct judge_result *r);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * textbook.h - prints the table of the textbook whose model ref/miniature.c
 * trains ("PyTorch FSDP", chapter 16.5: Output 16.5.1 and exercise 16.5.2) with
 * the numbers of this run, if the model was among its cases.
 */
#ifndef FSDP_CTS_TEXTBOOK_H
#define FSDP_CTS_TEXTBOOK_H

#include "cli/verdict/evaluate.h"

/* Reads the records of e. Prints nothing if no case is that model, or if not
 * all was found right; for a selection, as r says, it prints only if it was
 * asked for. The table stands in front of the report, whose last line is the
 * verdict. */
void textbook_print(const struct evaluate_input *e,
                    const struct judge_result *r, bool asked);

#endif

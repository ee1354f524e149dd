/* SPDX-License-Identifier: Apache-2.0 */
/*
 * miniature_table.h - prints the miniature of "PyTorch FSDP", chapter 16.5
 * (Output 16.5.1 and exercise 16.5.2) with the numbers of this run, if it was
 * among the cases.
 */
#ifndef FSDP_CTS_MINIATURE_TABLE_H
#define FSDP_CTS_MINIATURE_TABLE_H

#include "cli/evaluate.h"

/* Reads the records of e; prints nothing if no case is the miniature. */
void miniature_print(const struct evaluation *e);

#endif

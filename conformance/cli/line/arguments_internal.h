/* SPDX-License-Identifier: Apache-2.0 */
/* arguments_internal.h - shared by the files arguments*.c alone. */
#ifndef FSDP_CTS_ARGUMENTS_INTERNAL_H
#define FSDP_CTS_ARGUMENTS_INTERNAL_H

#include "cli/line/arguments.h"

/* Functions that read a value: a list of names; engines, which may be paths; a
 * mutant; numbers of ranks. */
int arguments_take_list(const struct option_row *row, char *value,
                        void *options);
int arguments_take_engines(const struct option_row *row, char *value,
                           void *options);
int arguments_take_mutant(const struct option_row *row, char *value,
                          void *options);
int arguments_take_ranks(const struct option_row *row, char *value,
                         void *options);

/* The i-th name that exists; NULL behind the last. */
const char *arguments_engine(uint32_t i);
const char *arguments_workload(uint32_t i);
const char *arguments_world(uint32_t i);

#endif

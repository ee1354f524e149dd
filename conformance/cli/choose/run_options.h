/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_options.h - checks which options of `run` go together, and with which
 * cases.
 */
#ifndef FSDP_CTS_RUN_OPTIONS_H
#define FSDP_CTS_RUN_OPTIONS_H

#include "cli/line/arguments.h"

/* 0, or EXIT_USAGE after a line on stderr that says what would be right. */
int run_options_check(const struct arguments *a);
/* The same for the options and the cases that were selected. */
int run_options_check_cases(const struct arguments *a,
                            const struct case_list *cases);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample_ranks.h - run --sample-ranks: tells which ranks are drawn.
 */
#ifndef FSDP_CTS_SAMPLE_RANKS_H
#define FSDP_CTS_SAMPLE_RANKS_H

#include "cli/line/arguments.h"

/* Prints a line on stderr for each number of ranks: those that are drawn, as
 * many as fit into the line. */
void sample_ranks_tell(const struct arguments *a,
                       const struct case_list *cases);

#endif

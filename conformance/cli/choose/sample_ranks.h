/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample_ranks.h - run --sample-ranks: whether so many ranks can be drawn, and
 * which they are.
 */
#ifndef FSDP_CTS_SAMPLE_RANKS_H
#define FSDP_CTS_SAMPLE_RANKS_H

#include "cli/line/arguments.h"

/* 0, or EXIT_USAGE after a line on stderr. */
int sample_ranks_check(const struct arguments *a,
                       const struct case_list *cases);
/* A line on stderr for each number of ranks: those that are drawn, as far as a
 * line goes. */
void sample_ranks_tell(const struct arguments *a,
                       const struct case_list *cases);

#endif

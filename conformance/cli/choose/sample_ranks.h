/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample_ranks.h - run --sample-ranks: which ranks are drawn.
 */
#ifndef FSDP_CTS_SAMPLE_RANKS_H
#define FSDP_CTS_SAMPLE_RANKS_H

#include "cli/line/arguments.h"

/* A line on stderr for each number of ranks: those that are drawn, as far as a
 * line goes. */
void sample_ranks_tell(const struct arguments *a,
                       const struct case_list *cases);

#endif

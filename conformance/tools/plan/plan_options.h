/* SPDX-License-Identifier: Apache-2.0 */
/* plan_options.h - the options of `plan` on the command line. */
#ifndef FSDP_CTS_PLAN_OPTIONS_H
#define FSDP_CTS_PLAN_OPTIONS_H

#include "tools/plan/plan_time.h"

struct plan_options {
    const char *model; /* NULL: no model was named */
    struct run_case c; /* world, strategy, layout, optimizer, sync, ahead */
    uint32_t param_dtype, reduce_dtype; /* 0: not given */
    bool precision_given;
    uint32_t units; /* as plan_units takes it; 1: as described */
    uint64_t memory, activations;
    const char *cluster; /* NULL: no time is asked for */
    struct plan_batch batch;
    const char *page; /* NULL: no page is written */
    bool one;         /* --strategy was given */
    bool ranks_given;
    bool json, list, exercises, help, check, try_units, least_ranks;
};

/* 0, or EXIT_USAGE after a line on stderr. */
int plan_options_parse(int argc, char **argv, struct plan_options *out);
void plan_options_help(void);

#endif

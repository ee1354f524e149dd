/* SPDX-License-Identifier: Apache-2.0 */
/*
 * count_case.h - plays a case of any number of ranks, each by itself
 * (count_rank.h), and compares the collectives, bytes and memory of all of them
 * with those that the oracle computes.
 */
#ifndef FSDP_CTS_COUNT_CASE_H
#define FSDP_CTS_COUNT_CASE_H

#include "run/play/drive.h"

struct count_result {
    uint64_t collectives, bytes; /* of all ranks, in the whole run */
    uint32_t asked, failed;      /* requirements */
    uint32_t unproved; /* of those that hold: failed to notice a spoiled
                        * record */
    char first[512];   /* the first thing that was wrong; "": nothing */
};

/* NOMEM, INVALID: no such model, or the oracle has no rules for it. What the
 * engine does wrong, or fails in, is in *out. */
int count_case(const struct run_case *c, const struct fsdp_engine *engine,
               const struct fsdp_engine *device_engine,
               const struct mutant *mutant, struct count_result *out,
               struct fsdp_error *error);

#endif

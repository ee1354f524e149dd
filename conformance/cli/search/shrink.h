/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shrink.h - makes a random case that fails smaller while it fails in the
 * same way, and shows what is left.
 */
#ifndef FSDP_CTS_SHRINK_H
#define FSDP_CTS_SHRINK_H

#include "cli/verdict/evaluate.h"

struct shrink {
    const struct arguments *a;
    const char *engine;
    const struct text *text;
    const char *rerun; /* a command to which an id is appended */
    struct evaluate_failure failure;
    uint32_t seconds; /* about so many at most */
};

/* Prints the smallest failing case that was found, on standard output. */
void shrink_and_show(const struct shrink *s);

/* graph_show.c: prints tree, units, sequence and options of a random case. */
void graph_show(const struct run_case *c);

#endif

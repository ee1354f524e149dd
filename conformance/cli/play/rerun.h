/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rerun.h - the command that runs a case again: made of the options of a run,
 * and kept beside its records for those who judge them later.
 */
#ifndef FSDP_CTS_RERUN_H
#define FSDP_CTS_RERUN_H

#include "cli/line/arguments.h"

enum {
    RERUN_BYTES = 1024
};

/* Makes "fsdp-cts run --engine E ... --case ", to which an id is appended: all
 * options that decide what a case shows, quoted for a shell. Either a->adapter
 * or `engine` was run. */
void rerun_make(const struct arguments *a, const char *engine,
                char text[RERUN_BYTES]);

/* Writes the same into the folder of an engine's records, as `rerun.json`;
 * paths of files that exist are made absolute. IO: says which file and why. */
int rerun_keep(const struct arguments *a, const char *engine,
               const char *records, struct fsdp_error *error);
/* Reads the command that was kept there. If none was, or it is no list of
 * options of a run, the command names no engine. */
void rerun_find(const char *records, char text[RERUN_BYTES]);

#endif

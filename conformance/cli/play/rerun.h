/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rerun.h - the command that runs a case again: made of the options of a run,
 * and kept beside its records, so that whoever judges them later knows it too.
 */
#ifndef FSDP_CTS_RERUN_H
#define FSDP_CTS_RERUN_H

#include "cli/line/arguments.h"

enum {
    RERUN_BYTES = 1024
};

/* "fsdp-cts run --engine E ... --case ", to which an id is appended: all that
 * decides what a case shows, as a shell takes it. One of a->adapter and
 * `engine` is what was run. */
void rerun_make(const struct arguments *a, const char *engine,
                char text[RERUN_BYTES]);

/* Writes the same into the folder of an engine's records, as `rerun.json`;
 * paths of files that are there, absolute. IO: says which file and why. */
int rerun_keep(const struct arguments *a, const char *engine,
               const char *records, struct fsdp_error *error);
/* What was kept there. Where nothing was, or what is no list of options of a
 * run, the command names no engine. */
void rerun_find(const char *records, char text[RERUN_BYTES]);

#endif

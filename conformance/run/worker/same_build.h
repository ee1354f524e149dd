/* SPDX-License-Identifier: Apache-2.0 */
/*
 * same_build.h - whether all ranks of a world over MPI are the same program:
 * each host may have a copy of its own.
 */
#ifndef FSDP_CTS_SAME_BUILD_H
#define FSDP_CTS_SAME_BUILD_H

#include <fsdp/engine.h>
#include <stdbool.h>

/* All ranks call it, once MPI is open. INVALID: the program, or the file of the
 * engine if it is one, has not the same bytes on every rank. The message names
 * a rank, its host and what differs, and *different is true on all ranks. IO,
 * NOMEM, COMM. */
int same_build(const char *engine, uint32_t world, bool *different,
               struct fsdp_error *error);

#endif

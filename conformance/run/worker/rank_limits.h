/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank_limits.h - what a rank may not do from some moment on, for good: the
 * kernel refuses it, whatever code of the process asks.
 *
 *   paths  (Landlock, rank_paths.h)  Nothing can be changed outside of a few
 *          folders, and nothing in /proc is seen but of this process.
 *   calls  (seccomp, rank_calls.h)  No sockets, no other process's memory, no
 *          tracing, no signals to others, no new processes or programs, no new
 *          shared memory. Refused with EPERM, and noted outside (notary.h). No
 *          file has other rights, owners, times or attributes: refused, too.
 */
#ifndef FSDP_CTS_RANK_LIMITS_H
#define FSDP_CTS_RANK_LIMITS_H

#include "run/witness/notary.h"

/* NULL, or what this kernel lacks: "Landlock". Asked once. */
const char *limits_lacking(void);

/* In a rank, before it does anything for an engine. `folders`, up to NULL, can
 * be changed. False: *why could not be done, and nothing may go on. */
bool limits_enter(struct notary *n, uint32_t rank, const char *const *folders,
                  const char **why);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank_limits.h - limits on a rank, from some moment on and for good: the
 * kernel refuses these things, whatever code of the process asks for them.
 *
 *   paths  (Landlock, rank_paths.h)  Nothing can be changed outside of a few
 *          folders, and in /proc only this process itself is seen.
 *   calls  (seccomp, rank_calls.h)  No sockets, no other process's memory, no
 *          tracing, no signals to others, no new processes or programs, no new
 *          shared memory. Refused with EPERM, and noted outside (notary.h).
 *          Changes of a file's rights, owner, times or attributes are refused,
 *          too.
 */
#ifndef FSDP_CTS_RANK_LIMITS_H
#define FSDP_CTS_RANK_LIMITS_H

#include "run/witness/notary.h"

/* NULL, or the name of what this kernel lacks: "Landlock". Found out once. */
const char *limits_lacking(void);

/* In a rank, before it does anything for an engine: sets the limits. What is in
 * `folders`, up to NULL, can still be changed. False: *why names what could not
 * be done, and the rank must not go on. */
bool limits_enter(struct notary *n, uint32_t rank, const char *const *folders,
                  const char **why);

#endif

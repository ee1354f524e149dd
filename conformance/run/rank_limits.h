/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank_limits.h - what a rank may not do from some moment on, for good: the
 * kernel refuses it, whoever asks.
 *
 *   paths  (Landlock)  Nothing can be changed outside of one folder, and
 *          nothing in /proc is seen but of this process.
 *   calls  (seccomp)   No sockets, no other process's memory, no tracing, no
 *          signals to others, no new processes or programs, no new shared
 *          memory. Refused with EPERM, and noted outside (notary.h).
 */
#ifndef FSDP_CTS_RANK_LIMITS_H
#define FSDP_CTS_RANK_LIMITS_H

#include "run/notary.h"

/* NULL, or what this kernel lacks: "Landlock". Asked once. */
const char *limits_lacking(void);

/* In a rank, before it does anything for an engine. `folder` is the one that
 * can be changed. False: *why could not be done, and nothing may go on. */
bool limits_enter(struct notary *n, uint32_t rank, const char *folder,
                  const char **why);

/* What a call is called, and what it was given, for people. */
void limits_describe(long number, const uint64_t argument[6], char *text,
                     size_t room);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank_calls.h - calls that the kernel refuses this process from some moment
 * on, for good (seccomp).
 */
#ifndef FSDP_CTS_RANK_CALLS_H
#define FSDP_CTS_RANK_CALLS_H

#include <stddef.h>
#include <stdint.h>

/* From now on calls are refused. Returns the descriptor by which the kernel
 * tells of each call that it is to refuse, and waits for an answer; or -1. */
int rank_calls_refuse(void);

/* Writes the name of a call and its arguments, for people. `kind` is its
 * program's: AUDIT_ARCH of seccomp_data. */
void rank_calls_describe(uint32_t kind, long number, const uint64_t argument[6],
                         char *text, size_t room);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weigh.h - what another process holds, as the kernel says it from outside:
 * that process is not asked, and has no say in it.
 */
#ifndef FSDP_CTS_WEIGH_H
#define FSDP_CTS_WEIGH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct weigh_process {
    uint64_t anonymous; /* resident, of no file: heap, stacks, mappings */
    uint64_t others;    /* resident, of files and shared */
    uint64_t peak;      /* of both, since weigh_forget_peak */
};

/* False: the kernel does not say it. */
bool weigh_process(pid_t pid, struct weigh_process *out);
/* What was resident before does not count any more. */
bool weigh_forget_peak(pid_t pid);
/* Bytes of files that a process has open and that no folder has any more. */
uint64_t weigh_unlinked(pid_t pid);
/* Bytes of files in folders, up to NULL, and in what is below them. */
uint64_t weigh_folders(const char *const *folders);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weigh.h - what another process holds, as the kernel says it: that process is
 * not asked, and cannot influence the answer.
 */
#ifndef FSDP_CTS_WEIGH_H
#define FSDP_CTS_WEIGH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct weigh_process {
    uint64_t anonymous; /* resident, in no file: heap, stacks, mappings */
    uint64_t others;    /* resident, in files or shared */
    uint64_t peak;      /* of both, since weigh_forget_peak */
};

/* False: the kernel does not say it. */
bool weigh_process(pid_t pid, struct weigh_process *out);
/* The peak begins anew. */
bool weigh_forget_peak(pid_t pid);
/* Bytes of files that are in no folder any more, but that the process has open
 * or has mapped privately. */
uint64_t weigh_gone(pid_t pid);
/* Bytes of all files in these folders, up to NULL, and below them, and of all
 * names there. */
uint64_t weigh_folders(const char *const *folders);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process.h - what the kernel says about this process, so that an engine that
 * hides memory or talks past the communicator is seen from outside.
 */
#ifndef FSDP_CTS_PROCESS_H
#define FSDP_CTS_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct process_view {
    uint64_t resident_bytes; /* now; 0: unknown */
    uint64_t peak_bytes;     /* since process_forget_peak; 0: unknown */
    uint64_t child_bytes;    /* at most in a child that was waited for */
    uint32_t channels;       /* open descriptors and files mapped shared,
                              * without those of a GPU's driver */
};

/* How much is asked for. */
enum process_ways {
    PROCESS_NO_WAYS,     /* memory alone */
    PROCESS_DESCRIPTORS, /* where the kernel refuses mappings that are shared
                            (rank_limits.h), there is none to be found */
    PROCESS_ALL_WAYS
};

/* Reads /proc/self. 0, or errno: a part could not be read, and stays 0. */
int process_look(struct process_view *out, enum process_ways ways);

/* What was resident before does not count any more: opening a GPU takes more
 * for a moment than it keeps. No effect where the kernel has no such thing. */
void process_forget_peak(void);
/* Looks at each page of some memory, so that it is resident. */
void process_touch(const void *memory, size_t bytes);

/* A file that a line of /proc/self/maps maps shared, if it is such a line and
 * none of a GPU's driver. */
struct process_file {
    unsigned int major, minor;
    unsigned long long inode;
};
bool process_shared_mapping(const char *line, struct process_file *out);
bool process_is_driver(const char *path);

#endif

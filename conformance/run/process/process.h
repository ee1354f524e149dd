/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process.h - what the kernel says about this process, so that an engine that
 * hides memory or talks past the communicator is seen from outside.
 */
#ifndef FSDP_CTS_PROCESS_H
#define FSDP_CTS_PROCESS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

struct process_view {
    uint64_t resident_bytes; /* now; 0: unknown */
    uint64_t peak_bytes;     /* since process_forget_peak; 0: unknown */
    uint64_t child_bytes;    /* the most that a child held which was waited
                                for */
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

/* The peak begins anew: opening a GPU takes more memory for a moment than it
 * keeps. No effect if the kernel cannot do it. */
void process_forget_peak(void);
/* Reads each page of some memory, so that it is resident. */
void process_touch(const void *memory, size_t bytes);

/* Whether a line of /proc/self/maps is a shared mapping of a file that is no
 * GPU driver's; and which file. */
struct process_file {
    unsigned int major, minor;
    unsigned long long inode;
};
bool process_shared_mapping(const char *line, struct process_file *out);
bool process_is_driver(const char *path);

/*
 * ---- What a call may change ----
 *
 * State of a process that a library may change without a word in its interface:
 * floating-point modes, signal mask and handlers, locale, limits, working
 * folder, umask, environment. It is noted at one moment and compared at
 * another.
 */
enum {
    PROCESS_SIGNALS = 64,
    PROCESS_STATE_TEXT = 128,
    PROCESS_STATE_FOLDER = 1024
};

/* How much is asked for. */
enum process_depth {
    PROCESS_IN_PASS, /* one call of the system */
    PROCESS_AT_REST, /* some calls of the system more */
    PROCESS_WHOLE,   /* eighty more */
};

/* Which part of the state has changed. */
enum process_found {
    PROCESS_SAME,
    PROCESS_OTHER,
    PROCESS_TABLES, /* what only PROCESS_WHOLE looks for: handlers, limits */
};

struct process_state {
    /* State of the thread, and of the process where that is as cheap. */
    uint64_t float_mode;  /* rounding, flush to zero, traps; no flags */
    uint64_t float_mode2; /* the same of the x87 */
    uint64_t masked;      /* signals */
    const void *locale;   /* of this thread */
    char locales[128];    /* of the process, as far as there is room */
    char *const *environment;
    /* Looked for at rest. */
    char folder[PROCESS_STATE_FOLDER];
    uint64_t variables; /* a hash of the environment */
    uint32_t umask;
    /* These take a call of the system for each entry. */
    uint64_t handler[PROCESS_SIGNALS]; /* a hash of each */
    struct rlimit limit[RLIM_NLIMITS];
};

/* Fills all fields. `alone`: no other rank is a thread of this process; if not,
 * only the thread's own state is noted. The umask is set to 0 and back: no
 * other thread may make a file meanwhile. */
void process_state_note(struct process_state *out, bool alone);

/* Compares, as far as `depth` says, with *s; says the first change in `text`,
 * and notes the new state in *s, so that a change is told once, for the call
 * that made it. */
enum process_found process_state_changed(struct process_state *s,
                                         enum process_depth depth, bool alone,
                                         char text[PROCESS_STATE_TEXT]);

#endif

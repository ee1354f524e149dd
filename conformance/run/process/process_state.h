/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process_state.h - what a library may change in the process that calls it
 * without a word in its interface: floating-point modes, signal mask and
 * handlers, locale, limits, working folder, umask, environment. Noted at one
 * moment and compared at another.
 */
#ifndef FSDP_CTS_PROCESS_STATE_H
#define FSDP_CTS_PROCESS_STATE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

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

/* What kind of it is not as it was. */
enum process_found {
    PROCESS_SAME,
    PROCESS_OTHER,
    PROCESS_TABLES, /* what PROCESS_WHOLE alone asks for: handlers, limits */
};

struct process_state {
    /* Of the thread; and of the process, as cheap. */
    uint64_t float_mode;  /* rounding, flush to zero, traps; no flags */
    uint64_t float_mode2; /* of x87 */
    uint64_t masked;      /* signals */
    const void *locale;   /* of this thread */
    char locales[128];    /* of the process, as far as there is room */
    char *const *environment;
    /* At rest. */
    char folder[PROCESS_STATE_FOLDER];
    uint64_t variables; /* a hash of the environment */
    uint32_t umask;
    /* A call of the system for each entry. */
    uint64_t handler[PROCESS_SIGNALS]; /* a hash of each */
    struct rlimit limit[RLIM_NLIMITS];
};

/* Fills all of it. `alone`: no other rank is a thread of this process; if not,
 * only what is the thread's own is asked for. The umask is put to 0 and back:
 * no other thread may make a file meanwhile. */
void process_state_note(struct process_state *out, bool alone);

/* Says in `text` what is not as it was in *s any more, of what `depth` asks
 * for, and notes it there: the first of what one call has changed is told. */
enum process_found process_state_changed(struct process_state *s,
                                         enum process_depth depth, bool alone,
                                         char text[PROCESS_STATE_TEXT]);

#endif

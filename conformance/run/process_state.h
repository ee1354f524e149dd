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

struct process_state {
    /* What a call costs nothing to ask. */
    uint64_t float_mode;  /* rounding, flush to zero, traps; no flags */
    uint64_t float_mode2; /* of x87 */
    uint64_t masked;      /* signals */
    const void *locale;   /* of this thread */
    char locales[128];    /* of the process, as far as there is room */
    char *const *environment;
    /* What takes a hundred calls of the system: at rest alone. */
    char folder[PROCESS_STATE_FOLDER];
    uint64_t handler[PROCESS_SIGNALS]; /* a hash of each */
    struct rlimit limit[RLIM_NLIMITS];
    uint64_t variables; /* a hash of the environment */
    uint32_t umask;     /* where nobody else runs in this process */
};

/* Fills all of it. `alone`: no other rank is a thread of this process, and so
 * the umask can be asked for. */
void process_state_note(struct process_state *out, bool alone);

/* Says in `text` what is not as it was in *s any more, and notes it there, so
 * that each change is told once. False: all is as it was. */
bool process_state_changed(struct process_state *s, bool at_rest, bool alone,
                           char text[PROCESS_STATE_TEXT]);

#endif

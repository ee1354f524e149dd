/* SPDX-License-Identifier: Apache-2.0 */
/*
 * debug.h - a debugger on one rank of one case: the rank waits for it before
 * its engine is called at all, and the others wait for the rank where they need
 * it. gdb has the terminal; nothing of the run has a deadline meanwhile.
 */
#ifndef FSDP_CTS_DEBUG_H
#define FSDP_CTS_DEBUG_H

#include <stdbool.h>
#include <sys/types.h>

/* In the rank: says that it waits in this file, which it makes, and returns
 * when a debugger has come, stopped there; or when it was told that none
 * comes: false. */
bool debug_wait(const char *file);

/* Whoever supervises. All zero: no rank has been seen. */
struct debugger {
    pid_t rank, gdb; /* 0: not seen, not started; -1: has ended */
};
/* Looks whether the rank waits, and starts gdb on it with this process's
 * terminal, whose interrupts are gdb's from then on; or whether gdb has ended,
 * and then lets the rank go on. */
void debugger_look(struct debugger *d, const char *file);
/* Waits until gdb ends, if it runs. */
void debugger_end(struct debugger *d);

#endif

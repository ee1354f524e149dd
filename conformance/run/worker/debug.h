/* SPDX-License-Identifier: Apache-2.0 */
/*
 * debug.h - a debugger on one rank of one case: the rank waits for it before
 * any call of its engine, and the others wait for the rank as soon as they need
 * it. gdb has the terminal, and nothing in the run has a deadline meanwhile.
 */
#ifndef FSDP_CTS_DEBUG_H
#define FSDP_CTS_DEBUG_H

#include <stdbool.h>
#include <sys/types.h>

/* In the rank: makes this file, which says that it waits, and stops. Returns
 * true when a debugger has come; false if the file cannot be made, or the rank
 * was told that none comes. */
bool debug_wait(const char *file);

/* The state of the supervisor. All zero: no rank has been seen. */
struct debugger {
    pid_t rank, gdb; /* 0: not seen, or not started; -1: has ended */
};
/* If the rank waits, starts gdb on it with this process's terminal, whose
 * interrupts are gdb's from then on. If gdb has ended, lets the rank go on. */
void debugger_look(struct debugger *d, const char *file);
/* Waits until gdb ends, if it is running. */
void debugger_end(struct debugger *d);

#endif

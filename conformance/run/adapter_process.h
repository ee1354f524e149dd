/* SPDX-License-Identifier: Apache-2.0 */
/*
 * adapter_process.h - runs a command by the shell, in a process group of its
 * own, with its output in a file, and watches it.
 */
#ifndef FSDP_CTS_ADAPTER_PROCESS_H
#define FSDP_CTS_ADAPTER_PROCESS_H

#include <fsdp/status.h>
#include <stdbool.h>

struct adapter_process {
    const char *command, *verb, *job; /* "COMMAND VERB JOB" */
    const char *output;               /* file */
    uint32_t timeout_ms;
    /* A count that grows while the command gets on, even if it prints
     * nothing. */
    uint64_t (*progress)(void *context);
    void *context;
    /* How the command ended. */
    int wait_status;
    bool timed_out;
};

/* Runs the command to its end, and ends all that it started. ABORTED:
 * interrupted. IO. */
int adapter_process_run(struct adapter_process *p, struct fsdp_error *error);

/* Prints the last part of the command's output on stderr. */
void adapter_process_show(const struct adapter_process *p);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * adapter_process.h - a command that is run by the shell, in a group of its
 * own, with its output in a file, and watched.
 */
#ifndef FSDP_CTS_ADAPTER_PROCESS_H
#define FSDP_CTS_ADAPTER_PROCESS_H

#include <fsdp/status.h>
#include <stdbool.h>

struct adapter_process {
    const char *command, *verb, *job; /* "COMMAND VERB JOB" */
    const char *output;               /* file */
    uint32_t timeout_ms;
    /* Counts what shows that it gets on, beside its output. */
    uint64_t (*progress)(void *context);
    void *context;
    /* How it ended. */
    int wait_status;
    bool timed_out;
};

/* Runs it to its end, with all that it started. ABORTED: interrupted. IO. */
int adapter_process_run(struct adapter_process *p, struct fsdp_error *error);

/* The end of its output, on stderr. */
void adapter_process_show(const struct adapter_process *p);

#endif

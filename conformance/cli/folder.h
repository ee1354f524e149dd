/* SPDX-License-Identifier: Apache-2.0 */
/*
 * folder.h - the folder that records go to: made, cleaned, removed.
 */
#ifndef FSDP_CTS_FOLDER_H
#define FSDP_CTS_FOLDER_H

#include <fsdp/status.h>
#include <stdbool.h>

struct folder {
    char path[1024];
    bool temporary; /* removed by folder_close */
    bool locked;    /* no other run may write to it */
    int lock;
};

/* wanted = NULL: a temporary one. Else made if missing, with `baseline` in
 * it, and refused while another run has it open. IO: says which path and
 * why. */
int folder_open(const char *wanted, struct folder *out,
                struct fsdp_error *error);
/* Removes half-written files (*.partial, .batch-*). */
void folder_sweep(const struct folder *folder);
void folder_close(struct folder *folder);

#endif

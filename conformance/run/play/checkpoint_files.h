/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_files.h - what the driver does to checkpoints from the outside,
 * whatever engine wrote them and in whatever form.
 */
#ifndef FSDP_CTS_CHECKPOINT_FILES_H
#define FSDP_CTS_CHECKPOINT_FILES_H

#include <fsdp/status.h>
#include <stdbool.h>

/* Whether two folders have the same files with the same bytes. OK, MISMATCH,
 * or IO. */
int checkpoint_files_equal(const char *a, const char *b);
/* Whether a file of the folder has this text in it. OK, or IO. */
int checkpoint_files_have(const char *folder, const char *text, bool *found);
/* Turns the lowest bit of the byte in the middle of the largest file, and of
 * the largest in each folder beside that file's. */
int checkpoint_files_damage(const char *folder);

#endif

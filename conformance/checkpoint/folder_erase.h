/* SPDX-License-Identifier: Apache-2.0 */
/*
 * folder_erase.h - removes a folder with all that is in it; the only function
 * that does, here and in the parts above. (Checkpoints are removed by
 * descriptors, in an order that a crash must not break: checkpoint_place.c.)
 */
#ifndef FSDP_CTS_FOLDER_ERASE_H
#define FSDP_CTS_FOLDER_ERASE_H

/* Removes a folder and all that is in it, folders without rights for their
 * owner too; or a file. Links are removed, not followed. What is not there, or
 * cannot be removed, is passed over. Not for two threads at once in one
 * folder. */
void folder_erase(const char *path);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * folder_erase.h - the one way in which a folder is removed with all that is
 * in it, here and in the parts above. (Parts of checkpoints go by descriptors,
 * in an order that a crash may not break: checkpoint_place.c.)
 */
#ifndef FSDP_CTS_FOLDER_ERASE_H
#define FSDP_CTS_FOLDER_ERASE_H

/* Removes a folder and all that is in it, folders without rights for their
 * owner too; or a file. Links are removed, not followed. What is not there, or
 * cannot be removed, is passed over. Not for two threads at once in one
 * folder. */
void folder_erase(const char *path);

#endif

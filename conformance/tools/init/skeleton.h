/* SPDX-License-Identifier: Apache-2.0 */
/*
 * skeleton.h - an engine with places to fill in, made of one that is whole.
 *
 * In the text of the whole engine a place is a comment that begins with its
 * name and ends with <<, what is left out, and a comment of >>:
 *
 *     // reduce: fold u->grad of all ranks, each rank its chunk. <<
 *     FSDP_TRY(fsdp_communicate(...));
 *     // >>
 *
 * (with comments of C). The name is that of the level that asks for it.
 */
#ifndef FSDP_CTS_SKELETON_H
#define FSDP_CTS_SKELETON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum {
    SKELETON_NAME_BYTES = 16
};

/* Writes the text without the contents of its places, except for the first
 * `filled` ones. In the comments that are left the name becomes "TO DO, name".
 * Returns how many places there are, or -1 if a place does not end. */
int skeleton_write(const char *text, uint32_t filled, FILE *to);

/* The name of place i; false: there is none. */
bool skeleton_name(const char *text, uint32_t i,
                   char name[SKELETON_NAME_BYTES]);

#endif

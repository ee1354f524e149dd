/* SPDX-License-Identifier: Apache-2.0 */
/* engine_name.h - names an engine after its folder. */
#ifndef FSDP_CTS_ENGINE_NAME_H
#define FSDP_CTS_ENGINE_NAME_H

#include <stdio.h>

enum {
    ENGINE_NAME_BYTES = 32
};

/* The last part of a folder's path, which must be there, as a name that a
 * target of CMake may have: other characters become '-', and a name that CMake
 * keeps for itself gets "-engine" behind it. At most 31 characters. */
void engine_name(const char *folder, char name[ENGINE_NAME_BYTES]);

/* Writes the text with "from", in quotes, as "name". */
void engine_name_write(const char *text, const char *from, const char *name,
                       FILE *to);

#endif

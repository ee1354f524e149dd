/* SPDX-License-Identifier: Apache-2.0 */
/*
 * told.h - what the ranks of a case have to say for themselves, as a text for
 * people beside its record: what they printed, and where they stood when one of
 * them died or none got on. The reader of a failure finds it there.
 *
 *     rank 1 printed: layer 3 of 2
 *     rank 1, ended by signal 11, in the wrong call begin-twice, stood in
 *       #0 reduce (engine.c:120)
 *       #1 post_backward (engine.c:88)
 *     rank 0 then stood in
 *       ...
 */
#ifndef FSDP_CTS_TOLD_H
#define FSDP_CTS_TOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TOLD_BYTES = 32768,
    TOLD_LINES = 100 /* so many printed lines of a case are kept */
};

struct told {
    char text[TOLD_BYTES];
    size_t n;
    uint32_t lines;
};

/* The path FOLDER/rank-R.stack: in this file the rank says where it stood. */
enum {
    TOLD_PATH_BYTES = 4096 + 32
};
void told_stack_file(const char *folder, uint32_t rank,
                     char path[TOLD_PATH_BYTES]);

/* `wrap`: the program that ranks run under, or NULL. */
void told_begin(struct told *t, const char *wrap);
/* Replaces what is not printable ASCII by '?'. */
void told_make_plain(char *text);
/* Adds a line that a rank printed, without its end and made plain; rank -1: it
 * is not known which rank printed it. */
void told_print(struct told *t, int rank, const char *line);
/* Writes the text to FOLDER/told.txt, followed by the stacks that ranks left
 * there, which are removed. With `names` the functions of stacks are named, but
 * for those in files below `never`. If there is nothing to say no file is made,
 * and if it cannot be written it is missing. */
void told_keep(struct told *t, const char *folder, uint32_t ranks, bool names,
               const char *never);

#endif

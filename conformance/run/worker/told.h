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
    TOLD_LINES = 100 /* that are printed in a case and kept */
};

struct told {
    char text[TOLD_BYTES];
    size_t n;
    uint32_t lines;
};

/* FOLDER/rank-R.stack: where that rank says where it stood. */
enum {
    TOLD_PATH_BYTES = 4096 + 32
};
void told_stack_file(const char *folder, uint32_t rank,
                     char path[TOLD_PATH_BYTES]);

/* `wrap`: what ranks run under, or NULL. */
void told_begin(struct told *t, const char *wrap);
/* What is not printable ASCII becomes '?'. */
void told_make_plain(char *text);
/* A line without its end, plain; rank -1: nobody knows whose it is. */
void told_print(struct told *t, int rank, const char *line);
/* Writes it to FOLDER/told.txt with what ranks left there of where they stood,
 * and removes that. `names`: those of functions are looked for, but in no file
 * below `never`. Where there is nothing to say there is no file; one that
 * cannot be written is missing. */
void told_keep(struct told *t, const char *folder, uint32_t ranks, bool names,
               const char *never);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stack_names.h - the names of the functions in which a rank stood, made from
 * what it left (world_stack.c): addresses, and what was mapped where. They come
 * from the files that were mapped, by addr2line where the machine has it; else
 * a frame is a file and an offset in it, which addr2line can name on another
 * machine.
 *
 * The file is a rank's, so nothing in it is trusted.
 */
#ifndef FSDP_CTS_STACK_NAMES_H
#define FSDP_CTS_STACK_NAMES_H

#include <stdbool.h>
#include <stdint.h>

enum {
    STACK_NAME_BYTES = 512,
    STACK_FRAMES = 24, /* of a stack: the innermost */
    STACKS_OF_A_FILE = 16
};

struct stack_frame {
    uint64_t address;
    char module[256]; /* path; "": no file's */
    uint64_t offset;  /* as the file itself counts */
    /* "reduce (engine.c:120), in step (engine.c:300)": inlined */
    char name[STACK_NAME_BYTES];
};

struct stack {
    int signal;     /* that ended the rank; 0: it was asked */
    bool main;      /* its first thread */
    char doing[64]; /* the wrong call that it was in; "": none */
    uint32_t n;
    struct stack_frame frame[STACK_FRAMES];
};

/* What is in the file, up to STACKS_OF_A_FILE, without names; 0 too if there
 * is none. */
uint32_t stack_read(const char *path, struct stack stack[STACKS_OF_A_FILE]);
/* Names each frame; those in files below `never`, if that is not NULL, by the
 * file and offset alone. */
void stack_name(struct stack *s, const char *never);

#endif

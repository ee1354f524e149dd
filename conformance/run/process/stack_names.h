/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stack_names.h - names the functions in which a rank stood, from the file that
 * it left (world_stack.c): addresses, and what was mapped where. The names are
 * read from the files that were mapped, by addr2line if the machine has it; if
 * not, a frame is a file and an offset in it, which addr2line can name on
 * another machine.
 *
 * The rank wrote the file, so nothing in it is trusted.
 */
#ifndef FSDP_CTS_STACK_NAMES_H
#define FSDP_CTS_STACK_NAMES_H

#include <stdbool.h>
#include <stdint.h>

enum {
    STACK_NAME_BYTES = 512,
    STACK_FRAMES = 24, /* the innermost frames of a stack are kept */
    STACKS_OF_A_FILE = 16
};

struct stack_frame {
    uint64_t address;
    char module[256]; /* path; "": the address is in no file */
    uint64_t offset;  /* its address as the file itself counts */
    /* "reduce (engine.c:120), in step (engine.c:300)": inlined */
    char name[STACK_NAME_BYTES];
};

struct stack {
    int signal;     /* the signal that ended the rank; 0: the rank was asked */
    bool main;      /* it is the rank's first thread */
    char doing[64]; /* the wrong call that the rank was in; "": none */
    uint32_t n;
    struct stack_frame frame[STACK_FRAMES];
};

/* Reads the stacks in the file, at most STACKS_OF_A_FILE, without names;
 * returns how many, 0 too if there is no file. */
uint32_t stack_read(const char *path, struct stack stack[STACKS_OF_A_FILE]);
/* Names each frame; if it is in a file below `never`, which may be NULL, by
 * that file and the offset alone. */
void stack_name(struct stack *s, const char *never);

#endif

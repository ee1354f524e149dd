/* SPDX-License-Identifier: Apache-2.0 */
/*
 * case_script.h - scripts that cases play, by name: those of the suite
 * (scripts.txt), and those that a user gave as text, whose names are made of
 * their hash. Here a script is text; script/script.h reads it.
 */
#ifndef FSDP_CTS_CASE_SCRIPT_H
#define FSDP_CTS_CASE_SCRIPT_H

#include "cases/case.h"

struct case_script {
    char name[CASE_SCRIPT_NAME_BYTES];
    uint32_t actions; /* that are played: a repeated action counts each time */
    const char *text; /* canonical if given; stays until the program ends */
    bool given;       /* it was given as text, and is not the suite's */
};

/* The script of this name, or NULL. May be called from any thread. */
const struct case_script *case_script_find(const char *name);
/* The script that c plays, or NULL: it plays none. */
const struct case_script *case_script_of(const struct run_case *c);
/* The suite's own scripts: the i-th, or NULL behind the last one. */
const struct case_script *case_script_listed(uint32_t i);

/* Adds a canonical text to the scripts, unless it is there. *out is the script,
 * whose name is "text-" and 12 hexadecimal digits of its hash. NOMEM; INVALID:
 * another text has the same name. */
int case_script_add(const char *text, uint32_t actions,
                    const struct case_script **out);

/* c plays s from now on: as many steps as s has actions. */
void case_play_script(struct run_case *c, const struct case_script *s);

#endif

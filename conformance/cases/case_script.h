/* SPDX-License-Identifier: Apache-2.0 */
/*
 * case_script.h - scripts that cases play, by name: those of the suite
 * (scripts.txt), and those that were given as text, whose names are made of
 * their hash. Here a script is text; script/script.h reads it.
 */
#ifndef FSDP_CTS_CASE_SCRIPT_H
#define FSDP_CTS_CASE_SCRIPT_H

#include "cases/case.h"

struct case_script {
    char name[CASE_SCRIPT_NAME_BYTES];
    uint32_t actions; /* that are played: what is repeated counts each time */
    const char *text; /* of those given canonical; until the program ends */
    bool given;       /* it is not the suite's */
};

/* The script of this name, or NULL. May be called from any thread. */
const struct case_script *case_script_find(const char *name);
/* The suite's own: the i-th, or NULL behind the last one. */
const struct case_script *case_script_listed(uint32_t i);

/* Puts a canonical text among them, unless it is there; *out is what it is
 * found as: "text-" and 12 hexadecimal digits of its hash. NOMEM; INVALID:
 * another text is found as the same. */
int case_script_add(const char *text, uint32_t actions,
                    const struct case_script **out);

/* c plays s from now on: as many steps as s has actions. */
void case_play_script(struct run_case *c, const struct case_script *s);

#endif

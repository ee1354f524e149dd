/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_checks.h - checks that families of requirements about scripts share. A
 * row names one, and gives it its data (judge/requirement.h).
 */
#ifndef FSDP_CTS_SCRIPT_CHECKS_H
#define FSDP_CTS_SCRIPT_CHECKS_H

#include "judge/compare/compare_checks.h"
#include "requirements/script_action.h"

/* check_answers and check_answers_named of scripts that make all of the calls
 * whose `answers` the row wants, at rest or in a pass: of one alone
 * script.answers tells. */
extern const struct requirement_check check_asked;
extern const struct requirement_check check_asked_named;

/* `look` holds of every look of a script, where one shows what it is about. */
extern const struct requirement_check check_looks;

/* Whether the part is what the row's `look` is about, at that stage. */
bool script_look_shows(const struct expect *e, const struct compare_part *part,
                       uint32_t stage);

/* What the rank has live of a kind behind each action that `is` one of these is
 * what the oracle says. And the least damage to that. */
bool script_rests(const struct expect *e, const struct record_rank *rank,
                  uint32_t k, uint32_t kind,
                  bool (*is)(const struct script_action *a), struct finding *f);
bool script_spoil_rest(const struct expect *e, struct record_rank *rank,
                       uint32_t kind,
                       bool (*is)(const struct script_action *a));

/* The first collective of the last rank in an action, of which `is` is true;
 * `of` is handed on. NULL: there is none. */
struct record_collective *script_find_collective(
    const struct expect *e, struct record *r,
    bool (*is)(const struct expect *e, uint32_t i,
               const struct record_collective *c, uint32_t of),
    uint32_t of);

#endif

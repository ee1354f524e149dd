/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_checks.h - checks that families of requirements about scripts share. A
 * row names one, and gives it its data (judge/requirement.h).
 */
#ifndef FSDP_CTS_SCRIPT_CHECKS_H
#define FSDP_CTS_SCRIPT_CHECKS_H

#include "judge/compare/compare_checks.h"
#include "requirements/script_action.h"

/* check_answers and check_answers_named for scripts that make all calls in the
 * row's `answers`, at rest or in a pass. (script.answers judges scripts that
 * make only some of them.) */
extern const struct requirement_check check_asked;
extern const struct requirement_check check_asked_named;

/* The row's `look` must hold for every look of a script; applies if some look
 * shows a value that the row is about. */
extern const struct requirement_check check_looks;

/* Whether the row's `look` is about this part at that stage. */
bool script_look_shows(const struct expect *e, const struct compare_part *part,
                       uint32_t stage);

/* Whether the rank has, behind each action for which `is` is true, as many live
 * bytes of a kind as the oracle says. The second is the spoil: one byte more
 * behind the first such action. */
bool script_rests(const struct expect *e, const struct record_rank *rank,
                  uint32_t k, uint32_t kind,
                  bool (*is)(const struct script_action *a), struct finding *f);
bool script_spoil_rest(const struct expect *e, struct record_rank *rank,
                       uint32_t kind,
                       bool (*is)(const struct script_action *a));

/* For spoils: the last rank's first collective in an action for which `is` is
 * true; `of` is handed on to `is`. NULL: there is none. */
struct record_collective *script_find_collective(
    const struct expect *e, struct record *r,
    bool (*is)(const struct expect *e, uint32_t i,
               const struct record_collective *c, uint32_t of),
    uint32_t of);

#endif

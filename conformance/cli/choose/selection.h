/* SPDX-License-Identifier: Apache-2.0 */
/*
 * selection.h - which cases of the manifest a command is about.
 */
#ifndef FSDP_CTS_SELECTION_H
#define FSDP_CTS_SELECTION_H

#include "cli/line/arguments.h"

/* The cases that the arguments select, in the manifest's order. World sizes
 * that the manifest lacks have cases of their own (other_worlds.txt). Returns
 * 0, or an exit code after a line on stderr: selecting nothing is an error.
 * The caller releases the list. */
int selection_make(const struct arguments *a, struct case_list *out);

/* Whether these cases are the whole manifest, and all requirements are asked of
 * it: a verdict is about nothing less. */
bool selection_is_whole(const struct arguments *a,
                        const struct case_list *cases);

/* For an engine that is asked for no more than LEVEL_LAYOUT, which needs no
 * training: replaces each case by the one that only shards its model
 * (case_sharded), and drops repeated ones. */
void selection_only_shards(struct case_list *list);

#endif

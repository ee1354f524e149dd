/* SPDX-License-Identifier: Apache-2.0 */
/*
 * selection_script.h - the case that plays a script which was given as text.
 */
#ifndef FSDP_CTS_SELECTION_SCRIPT_H
#define FSDP_CTS_SELECTION_SCRIPT_H

#include "cli/line/arguments.h"

/*
 * a->script is a text, or a file that has one. The case is the one that --case
 * names; else the one that the script names; else the first of the manifest
 * that trains, has the workload, strategy and ranks that are asked for (or
 * several ranks), and has four microbatches. Returns 0, or EXIT_USAGE after a
 * line on stderr: the script is malformed, or not legal (the line says the
 * number of the action), or has what cannot be played; or a case is named, and
 * a workload, a strategy or ranks are asked for as well. The caller releases
 * the list.
 */
int selection_of_script(const struct arguments *a, struct case_list *out);

#endif

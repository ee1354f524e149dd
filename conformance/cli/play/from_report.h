/* SPDX-License-Identifier: Apache-2.0 */
/*
 * from_report.h - the cases of an earlier report, and its engines: `run --from
 * REPORT --failed` runs again what failed, however many cases that are.
 */
#ifndef FSDP_CTS_FROM_REPORT_H
#define FSDP_CTS_FROM_REPORT_H

#include "cli/line/arguments.h"
#include "cli/play/rerun.h"
#include "judge/judge.h"

struct from_report {
    struct case_list cases;
    char (*words)[RERUN_BYTES]; /* the command of each part, into which the
                                   engines' names point */
    char script[JUDGE_SCRIPT_ID_BYTES]; /* id of the first script that failed,
                                           or "" */
};

/* Does what --from, --failed and --last-failed say: sets a->among, and, if no
 * engine was named, takes the report's engines, with whatever else a rerun
 * needs. That works for engines of the suite alone: a path or a command in a
 * report must be named again, or it is refused. `takes`: as for
 * arguments_parse. 0, or an exit code after a line on stderr. The caller
 * releases `out`, whatever is returned, after its last use of `a`. */
int from_report(struct arguments *a, unsigned takes, struct from_report *out);
void from_report_release(struct from_report *f);

#endif

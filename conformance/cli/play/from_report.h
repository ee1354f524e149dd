/* SPDX-License-Identifier: Apache-2.0 */
/*
 * from_report.h - the cases of an earlier report, with the engines that it is
 * of: `run --from REPORT --failed` runs again what failed, however many cases
 * that are.
 */
#ifndef FSDP_CTS_FROM_REPORT_H
#define FSDP_CTS_FROM_REPORT_H

#include "cli/line/arguments.h"
#include "cli/play/rerun.h"
#include "judge/judge.h"

struct from_report {
    struct case_list cases;
    char (*words)[RERUN_BYTES]; /* where engines' names are, of each part */
    char script[JUDGE_SCRIPT_ID_BYTES]; /* the first that failed, or "" */
};

/* As --from, --failed and --last-failed say: sets a->among, and if no engine
 * was named, those of the report, with what else a rerun needs. Engines of the
 * suite alone: a path or a command of a report must be named again, else it is
 * refused. Of `takes`,
 * see arguments_parse. 0, or an exit code after a line on stderr. The caller
 * releases `out`, whatever is returned, behind its last use of `a`. */
int from_report(struct arguments *a, unsigned takes, struct from_report *out);
void from_report_release(struct from_report *f);

#endif

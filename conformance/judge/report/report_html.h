/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_html.h - a report as one page for a browser, which needs no other
 * file: verdicts and their first causes, the levels as a staircase, every
 * requirement, every case with its memory over a step under the bound, and the
 * kill matrix. Without its script, which only searches, the page says all that
 * it has to say.
 */
#ifndef FSDP_CTS_REPORT_HTML_H
#define FSDP_CTS_REPORT_HTML_H

#include "judge/report/report.h"

/* A known mistake: an engine that is wrong in one way. */
struct report_mutant {
    const char *name, *text;
    const char *kills; /* ids of all requirements that it must fail, with spaces
                          between */
};

struct report_page {
    const struct report_part *part;
    uint32_t n; /* how many parts; at least one */
    /* [n]: the records of each part, of which describe, undescribe, record,
     * baseline, next and their contexts are used. NULL: there are none, and
     * what only records have is not drawn: curves, collectives, peaks of ranks,
     * maps of tensors. */
    const struct judge_input *source;
    /* [n]: results of an earlier run of the same engines, to compare with;
     * NULL: there are none. */
    const struct judge_result *const *against;
    /* The kill matrix, a row for each mutant; without any it is not drawn. */
    const struct report_mutant *mutant; /* [n_mutants] */
    uint32_t n_mutants;
};

/* Written as PATH.partial and renamed. IO: says which file and why. NOMEM. */
int report_html(const struct report_page *page, const char *path,
                struct fsdp_error *error);

/* The same drawings as files for documents, FOLDER/NAME.svg: of the first part
 * `levels`; of the case in which to look first, or else of its first case,
 * `case-memory`; and, with records, `curve`, `collectives`, `peaks` and `map`.
 * If there is nothing to draw, its file is not written. The folder exists. IO,
 * NOMEM. */
int report_svg(const struct report_page *page, const char *folder,
               struct fsdp_error *error);

#endif

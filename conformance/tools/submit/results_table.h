/* SPDX-License-Identifier: Apache-2.0 */
/*
 * results_table.h - the results of several submissions side by side: which has
 * which verdict, what fails and why, and each requirement; or release by
 * release.
 */
#ifndef FSDP_CTS_RESULTS_TABLE_H
#define FSDP_CTS_RESULTS_TABLE_H

#include "tools/submit/explanations.h"
#include "tools/submit/submission.h"
#include <stdio.h>

struct results_entry {
    const struct submission *s;
    const struct judge_result *r;
    const struct explanations *x; /* matched with r */
};

/* Writes them as a part of a Markdown page; IO. */
int results_markdown(const struct results_entry *entry, uint32_t n, FILE *out);
/* The same by releases: a row for each release, a column for each
 * implementation, and what fails where, explained or not. FORMAT: two
 * submissions for one place of the table; IO. */
int results_releases(const struct results_entry *entry, uint32_t n, FILE *out,
                     struct fsdp_error *error);
/* For each implementation, from one of its releases to the next that is given:
 * what begins to fail, holds again, or is no longer decided, in the cases that
 * both have. */
void results_changes(const struct results_entry *entry, uint32_t n, FILE *out);
/* As a page for a browser, which needs no other file; IO. */
int results_page(const struct results_entry *entry, uint32_t n, FILE *out);
/* For programs: an array, an object for each submission. NOMEM, IO. */
int results_json(const struct results_entry *entry, uint32_t n, FILE *out);

/* Writes a stranger's text into a cell of a table. */
void results_put_text(FILE *f, const char *s);
/* The table of memory, of the submissions that measured it; nothing if none
 * did. */
void results_memory(const struct results_entry *entry, uint32_t n, FILE *out);

/* The outcomes of a requirement over all cases. */
struct results_cell {
    uint32_t pass, fail, blocked;
    double ratio; /* the largest ratio of an error to its bound; 0: none */
};
struct results_cell results_cell(const struct judge_result *r,
                                 const char *requirement);

#endif

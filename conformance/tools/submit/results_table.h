/* SPDX-License-Identifier: Apache-2.0 */
/*
 * results_table.h - what several submissions came to, side by side: who has
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

/* As a part of a Markdown page; IO. */
int results_markdown(const struct results_entry *entry, uint32_t n, FILE *out);
/* Instead: a row for each release, a column for each implementation, and what
 * fails where, explained or not. FORMAT: a place of the table has two; IO. */
int results_releases(const struct results_entry *entry, uint32_t n, FILE *out,
                     struct fsdp_error *error);
/* Of each implementation, from one of its releases to the next that is given:
 * what begins to fail, is right again, or is no longer decided, in the cases
 * that both have. */
void results_changes(const struct results_entry *entry, uint32_t n, FILE *out);
/* As a page for a browser, which needs no other file; IO. */
int results_page(const struct results_entry *entry, uint32_t n, FILE *out);
/* For programs: an array, an object for each submission. NOMEM, IO. */
int results_json(const struct results_entry *entry, uint32_t n, FILE *out);

/* Text of a stranger in a cell of a table. */
void results_put_text(FILE *f, const char *s);
/* The table of memory, of those that measured it; nothing, if none did. */
void results_memory(const struct results_entry *entry, uint32_t n, FILE *out);

/* What came of a requirement over all cases. */
struct results_cell {
    uint32_t pass, fail, blocked;
    double ratio; /* the greatest of an error to its bound; 0: none */
};
struct results_cell results_cell(const struct judge_result *r,
                                 const char *requirement);

#endif

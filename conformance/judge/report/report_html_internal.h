/* SPDX-License-Identifier: Apache-2.0 */
/* report_html_internal.h - shared by report_html*.c, and by nobody else. */
#ifndef FSDP_CTS_REPORT_HTML_INTERNAL_H
#define FSDP_CTS_REPORT_HTML_INTERNAL_H

#include "judge/draw/page_memory.h"
#include "judge/report/report_html.h"
#include "judge/report/report_internal.h"

/* A case that has a timeline, and the first one that has the same. */
struct html_picture {
    uint32_t part, c;
    uint32_t same; /* index: its own where it is the first */
};

/* A page on its way. */
struct html {
    FILE *f;
    const struct report_part *part;
    uint32_t n;                       /* parts */
    const struct judge_input *source; /* [n]: records; NULL: there are none */
    const struct judge_result *const *against; /* [n], or NULL */
    const struct report_mutant *mutant;        /* [n_mutants] */
    uint32_t n_mutants;
    struct html_picture *picture;
    uint32_t n_pictures;
    uint32_t n_failures; /* told in full so far */
    uint32_t n_drawn;    /* cases whose records are, so far */
    uint32_t n_ids;      /* of drawings that are titled, so far */
};

/* How many of a case's items came to what. */
struct html_counts {
    uint32_t of[JUDGE_N_OUTCOMES];
    uint32_t failures; /* failed, crashed or hung */
};
struct html_counts html_count_case(const struct judge_result *r, uint32_t c);
struct html_counts html_count_requirement(const struct judge_result *r,
                                          uint32_t q);

/* Addresses in the page: "#r-comm.order", "#c0-17", "#f0-17-42". */
void html_link_requirement(const struct html *h, const struct requirement *q);
void html_link_case(const struct html *h, uint32_t part, uint32_t c);
/* Of the engine: its name, or a word where nothing was recorded. */
const char *html_engine(const struct judge_result *r);

/* report_html_engine.c: an engine's verdict, levels and first cause. */
void html_engine_section(struct html *h, uint32_t part);
void html_staircase(struct html *h, const struct judge_result *r);
/* report_html_failure.c: how q failed in case c: where, what was got and what
 * wanted, and how to see it again. */
void html_failure(struct html *h, uint32_t part, uint32_t c, uint32_t q);
void html_define_bits(const struct html *h); /* what all bits are drawn upon */
/* report_html_requirements.c: what failed, and what is asked. */
void html_what_failed(struct html *h);
void html_requirements(struct html *h);
/* report_html_kills.c: known mistakes that fail where an engine fails first,
 * and nothing that it passes; and all of them, with what each fails (NOMEM). */
void html_alike(struct html *h, uint32_t part);
int html_kills(struct html *h);
/* report_html_cases.c: all cases. */
void html_cases(struct html *h);
/* report_html_pictures.c: which timelines there are (NOMEM); those that are
 * drawn once, for many cases; and that of one case, with its words. */
int html_find_pictures(struct html *h);
void html_define_pictures(struct html *h);
void html_show_picture(struct html *h, uint32_t part, uint32_t c);
/* Whether they look the same, to the last word. */
bool html_same_picture(const struct judge_figures *a,
                       const struct judge_figures *b);
/* The whole drawing, there and then; nothing where there is no timeline. */
void html_draw_memory(struct html *h, uint32_t part, uint32_t c);

/* report_html_records.c: what the record of a case shows, where there is one
 * and the page has room for it. */
void html_show_records(struct html *h, uint32_t part, uint32_t c);

/* report_html_against.c: what has changed since an earlier run, if there is one
 * (NOMEM). And whether q began to fail in the case since. */
int html_against(struct html *h);
bool html_is_new_failure(const struct html *h, uint32_t part, uint32_t c,
                         uint32_t q);

#endif

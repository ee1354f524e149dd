/* SPDX-License-Identifier: Apache-2.0 */
/* report_html_internal.h - what the files report_html*.c share. */
#ifndef FSDP_CTS_REPORT_HTML_INTERNAL_H
#define FSDP_CTS_REPORT_HTML_INTERNAL_H

#include "judge/draw/page_memory.h"
#include "judge/report/report_html.h"
#include "judge/report/report_internal.h"

/* A case that has a timeline, and the first case with the same timeline. */
struct html_picture {
    uint32_t part, c;
    uint32_t same; /* index of that first one, which may be this one */
};

/* A page that is being written. */
struct html {
    FILE *f;
    const struct report_part *part;
    uint32_t n; /* how many parts */
    /* [n]: where records come from; NULL: there are none */
    const struct judge_input *source;
    const struct judge_result *const *against; /* [n], or NULL */
    const struct report_mutant *mutant;        /* [n_mutants] */
    uint32_t n_mutants;
    struct html_picture *picture;
    uint32_t n_pictures;
    uint32_t n_failures; /* failures told in full so far */
    uint32_t n_drawn;    /* cases whose records were drawn so far */
    uint32_t n_ids;      /* drawings that were given a title so far */
};

/* How many items of a case, or of a requirement, had each outcome. */
struct html_counts {
    uint32_t of[JUDGE_N_OUTCOMES];
    uint32_t failures; /* items that failed, crashed or hung */
};
struct html_counts html_count_case(const struct judge_result *r, uint32_t c);
struct html_counts html_count_requirement(const struct judge_result *r,
                                          uint32_t q);

/* Writes links in the page: "#r-comm.order", "#c0-17", "#f0-17-42". */
void html_link_requirement(const struct html *h, const struct requirement *q);
void html_link_case(const struct html *h, uint32_t part, uint32_t c);
/* The engine's name, or a word that says that nothing was recorded. */
const char *html_engine(const struct judge_result *r);

/* report_html_engine.c: an engine's verdict, levels and first cause. */
void html_engine_section(struct html *h, uint32_t part);
void html_staircase(struct html *h, const struct judge_result *r);
/* report_html_failure.c: how q failed in case c: where, which value it got and
 * which it wanted, and how to see that again. */
void html_failure(struct html *h, uint32_t part, uint32_t c, uint32_t q);
void html_define_bits(const struct html *h); /* the ground of all drawn bits */
/* report_html_requirements.c: the requirements that failed, and all of them. */
void html_what_failed(struct html *h);
void html_requirements(struct html *h);
/* report_html_kills.c: known mistakes that fail where an engine fails first,
 * and in nothing that the engine passes; and all known mistakes, with what each
 * fails (NOMEM). */
void html_alike(struct html *h, uint32_t part);
int html_kills(struct html *h);
/* report_html_cases.c: all cases. */
void html_cases(struct html *h);
/* report_html_pictures.c: finds the timelines (NOMEM); draws once those that
 * many cases have; shows the one of a case, with words. */
int html_find_pictures(struct html *h);
void html_define_pictures(struct html *h);
void html_show_picture(struct html *h, uint32_t part, uint32_t c);
/* Whether two drawings would look the same, words included. */
bool html_same_picture(const struct judge_figures *a,
                       const struct judge_figures *b);
/* Draws the memory of a case here; nothing if it has no timeline. */
void html_draw_memory(struct html *h, uint32_t part, uint32_t c);

/* report_html_records.c: pictures of the record of a case, if there is one and
 * the page has room. */
void html_show_records(struct html *h, uint32_t part, uint32_t c);

/* report_html_against.c: what changed since an earlier run, if one is given
 * (NOMEM); and whether q failed in this case but not in that run. */
int html_against(struct html *h);
bool html_is_new_failure(const struct html *h, uint32_t part, uint32_t c,
                         uint32_t q);

#endif

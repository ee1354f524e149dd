/* SPDX-License-Identifier: Apache-2.0 */
/* report_html_records.h - pictures of one record; internal to report_html*.c.
 */
#ifndef FSDP_CTS_REPORT_HTML_RECORDS_H
#define FSDP_CTS_REPORT_HTML_RECORDS_H

#include "judge/report/report_html_internal.h"

/* What a picture of one case is made of. */
struct html_view {
    uint32_t part, index; /* the part, and the case's index in it */
    const struct judge_case *c;
    const struct record *record;
    struct expect expect; /* with its baseline, or NULL */
};

/* Reads the case's record and baseline from h->source and calls `draws`. IO:
 * there is no record of the case; NOMEM; INVALID: the oracle has no rules for
 * it. */
int html_look(struct html *h, uint32_t part, uint32_t c,
              void (*draws)(struct html *h, const struct html_view *v),
              struct fsdp_error *error);

/* Each of these draws nothing if the record lacks what the picture is about. */

/* report_html_curve.c: the losses, drawn over those of the unsharded run; the
 * first that differs is marked. */
void html_curve(struct html *h, const struct html_view *v);
/* report_html_collectives.c: the collectives of a step, below the expected
 * ones: of the first rank and step in which they differ, or else of the very
 * first. */
void html_collectives(struct html *h, const struct html_view *v);
/* report_html_peaks.c: the most that each rank held, beside the bound. */
void html_peaks(struct html *h, const struct html_view *v);
/* report_html_ranks.c: memory over a step, of each rank whose timeline differs
 * from rank 0's, which stands beside it; ranks with the same timeline share a
 * drawing. */
void html_ranks(struct html *h, const struct html_view *v);
/* report_html_map.c: a map of the tensor that failed first: where, and on which
 * rank, its bits differ from the unsharded run's. */
void html_map(struct html *h, const struct html_view *v);

#endif

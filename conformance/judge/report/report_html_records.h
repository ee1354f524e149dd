/* SPDX-License-Identifier: Apache-2.0 */
/* report_html_records.h - pictures of one record; internal to report_html*.c.
 */
#ifndef FSDP_CTS_REPORT_HTML_RECORDS_H
#define FSDP_CTS_REPORT_HTML_RECORDS_H

#include "judge/report/report_html_internal.h"

/* What is at hand of one case. */
struct html_view {
    uint32_t part, index; /* of the case in its part */
    const struct judge_case *c;
    const struct record *record;
    struct expect expect; /* with its baseline, or NULL */
};

/* Reads what there is of a case of h->source and has it drawn. IO: there is no
 * record of it; NOMEM; INVALID: the oracle has no rules for it. */
int html_look(struct html *h, uint32_t part, uint32_t c,
              void (*draws)(struct html *h, const struct html_view *v),
              struct fsdp_error *error);

/* Each draws nothing where the record does not have what it is about. */

/* report_html_curve.c: losses upon those of the unsharded run; the first that
 * differs is marked. */
void html_curve(struct html *h, const struct html_view *v);
/* report_html_collectives.c: those of a step, below those that are expected: of
 * the first rank and step where they differ, or else of the first. */
void html_collectives(struct html *h, const struct html_view *v);
/* report_html_peaks.c: the most that each rank held, beside the bound. */
void html_peaks(struct html *h, const struct html_view *v);
/* report_html_ranks.c: memory over a step of the ranks whose timeline is not
 * rank 0's, which stands beside it; ranks with the same are drawn once. */
void html_ranks(struct html *h, const struct html_view *v);
/* report_html_map.c: of the tensor that failed first, where on which rank its
 * bits differ from the unsharded run's. */
void html_map(struct html *h, const struct html_view *v);

#endif

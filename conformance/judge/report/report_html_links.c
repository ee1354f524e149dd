/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_html_links.c - what the sections of the page share: counts of
 * outcomes, and links to a requirement, a case or an engine.
 */
#include "judge/draw/page_text.h"
#include "judge/report/report_html_internal.h"

struct html_counts html_count_case(const struct judge_result *r, uint32_t c)
{
    struct html_counts n = {{0}, 0};

    for (uint32_t q = 0; q < r->n_requirements; q++) {
        if (r->reported[q]) {
            n.of[judge_item_at(r, c, q)->outcome]++;
            n.failures += judge_is_failure(judge_item_at(r, c, q)) ? 1 : 0;
        }
    }
    return n;
}

struct html_counts html_count_requirement(const struct judge_result *r,
                                          uint32_t q)
{
    struct html_counts n = {{0}, 0};

    for (uint32_t c = 0; c < r->n_cases && r->reported[q]; c++) {
        n.of[judge_item_at(r, c, q)->outcome]++;
        n.failures += judge_is_failure(judge_item_at(r, c, q)) ? 1 : 0;
    }
    return n;
}

void html_link_requirement(const struct html *h, const struct requirement *q)
{
    fprintf(h->f, "<a href=\"#r-%s\"><code>%s</code></a>", q->id, q->id);
}

void html_link_case(const struct html *h, uint32_t part, uint32_t c)
{
    fprintf(h->f, "<a href=\"#c%u-%u\">", part, c);
    page_escape_name(h->f, h->part[part].result->cases[c].id);
    fputs("</a>", h->f);
}

const char *html_engine(const struct judge_result *r)
{
    return r->engine[0] != '\0' ? r->engine : "no engine";
}

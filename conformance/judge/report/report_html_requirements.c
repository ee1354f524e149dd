/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_html_requirements.c - the requirements that failed, a row for each of
 * them and each engine; and all requirements, with the outcomes of each
 * engine's cases.
 */
#include "judge/draw/page_text.h"
#include "judge/report/report_html_internal.h"

#include <stdlib.h>

static void failed_row(struct html *h, uint32_t part, uint32_t q,
                       const struct html_counts *n)
{
    const struct judge_result *r = h->part[part].result;
    uint32_t c = 0;

    while (c + 1 < r->n_cases && !judge_is_failure(judge_item_at(r, c, q))) {
        c++;
    }
    fputs("<tr><td>", h->f);
    html_link_requirement(h, r->requirement[q]);
    fputs("</td><td data-l=\"engine\">", h->f);
    page_escape(h->f, html_engine(r));
    fprintf(h->f,
            "</td><td data-l=\"level\">%s</td><td class=\"n worse\" "
            "data-l=\"fail\">%u</td><td class=\"n\" data-l=\"pass\">%u"
            "</td><td class=\"wide\" data-l=\"first\">",
            requirement_level_name(r->requirement[q]->level), n->failures,
            n->of[JUDGE_PASS]);
    html_link_case(h, part, c);
    fputs("</td></tr>\n", h->f);
}

void html_what_failed(struct html *h)
{
    bool any = false;

    fputs("<h2 id=\"failed\">What failed</h2>\n", h->f);
    for (uint32_t p = 0; p < h->n; p++) {
        const struct judge_result *r = h->part[p].result;

        for (uint32_t q = 0; q < r->n_requirements; q++) {
            const struct html_counts n = html_count_requirement(r, q);

            if (n.failures > 0 && !any) {
                fputs("<div class=\"scroll\"><table class=\"changes\">"
                      "<thead><tr><th>requirement</th><th>engine</th>"
                      "<th>level</th><th class=\"n\">fail</th>"
                      "<th class=\"n\">pass</th><th>first case</th></tr>"
                      "</thead><tbody>\n",
                      h->f);
            }
            if (n.failures > 0) {
                any = true;
                failed_row(h, p, q, &n);
            }
        }
    }
    fputs(any ? "</tbody></table></div>\n"
              : "<p>Nothing that was judged.</p>\n",
          h->f);
}

static void needs(const struct html *h, const struct judge_result *r,
                  const struct requirement *asked)
{
    const char *at = asked->needs;
    char id[REQUIREMENT_ID_BYTES];
    bool first = true;

    while (requirement_next_need(&at, id)) {
        fputs(first ? " Needs " : ", ", h->f);
        html_link_requirement(
            h, r->requirement[requirement_index(r->requirement, id)]);
        first = false;
    }
    fputs(first ? "" : ".", h->f);
}

static void outcome_cell(const struct html *h, const struct judge_result *r,
                         uint32_t q)
{
    const struct html_counts n = html_count_requirement(r, q);
    const char *between = "";

    fputs("<td data-l=\"", h->f);
    page_escape(h->f, html_engine(r));
    fputs("\">", h->f);
    for (uint32_t o = 0; o < JUDGE_N_OUTCOMES; o++) {
        if (n.of[o] > 0 && o != JUDGE_NOT_APPLICABLE &&
            o != JUDGE_NOT_CLAIMED) {
            fprintf(h->f, "%s%u %s", between, n.of[o], judge_outcome_name(o));
            between = ", ";
        }
    }
    if (between[0] == '\0') {
        fprintf(h->f, "<span class=\"dim\">%s</span>",
                n.of[JUDGE_NOT_CLAIMED] > 0 ? "not claimed" : "not asked here");
    }
    fputs("</td>", h->f);
}

static void one(const struct html *h, uint32_t q)
{
    const struct judge_result *r = h->part[0].result;
    const struct requirement *asked = r->requirement[q];

    fprintf(h->f,
            "<tr id=\"r-%s\"><td><code>%s</code><br><span class=\"dim\">"
            "%s, %s</span></td><td class=\"wide\">",
            asked->id, asked->id, asked->must != 0 ? "MUST" : "SHOULD",
            requirement_level_name(asked->level));
    page_escape(h->f, asked->text);
    needs(h, r, asked);
    if (asked->claim) {
        fprintf(h->f, " Of engines that claim <code>%s</code>.", asked->claim);
    }
    fputs("</td>", h->f);
    for (uint32_t p = 0; p < h->n; p++) {
        outcome_cell(h, h->part[p].result, q);
    }
    fputs("</tr>\n", h->f);
}

void html_requirements(struct html *h)
{
    const struct judge_result *r = h->part[0].result;

    fputs("<h2 id=\"requirements\">What is asked</h2>\n<div "
          "class=\"scroll\"><table class=\"changes asked\"><thead><tr>"
          "<th>requirement</th><th>what it asks</th>",
          h->f);
    for (uint32_t p = 0; p < h->n; p++) {
        fputs("<th>", h->f);
        page_escape(h->f, html_engine(h->part[p].result));
        fputs("</th>", h->f);
    }
    fputs("</tr></thead><tbody>\n", h->f);
    for (uint32_t l = 0; l < N_LEVELS; l++) {
        for (uint32_t q = 0; q < r->n_requirements; q++) {
            if (r->requirement[q]->level == l) {
                one(h, q);
            }
        }
    }
    fputs("</tbody></table></div>\n", h->f);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_html_cases.c - every case: its outcomes, its memory over a step, and
 * each of its failures in full, up to a number of them.
 */
#include "judge/draw/page_frame.h"
#include "judge/draw/page_text.h"
#include "judge/report/report_html_internal.h"

enum {
    FAILURES_MOST = 250, /* told in full in one page */
    OPEN_MOST = 1        /* cases that are open from the start */
};

static void tag(const struct html *h, const char *css, uint32_t n,
                const char *what)
{
    if (n > 0) {
        fprintf(h->f, "<span class=\"tag %s\">%u %s</span>", css, n, what);
    }
}

static void case_head(const struct html *h, uint32_t part, uint32_t c,
                      const struct html_counts *n, bool open)
{
    const struct judge_result *r = h->part[part].result;

    fprintf(h->f, "<details class=\"case\" id=\"c%u-%u\" data-name=\"", part,
            c);
    page_escape(h->f, r->cases[c].id);
    fputs(" ", h->f);
    page_escape(h->f, html_engine(r));
    for (uint32_t q = 0; q < r->n_requirements && n->failures > 0; q++) {
        if (r->reported[q] && judge_is_failure(judge_item_at(r, c, q))) {
            fprintf(h->f, " %s", r->requirement[q]->id);
        }
    }
    fprintf(h->f, "\"%s%s><summary><span class=\"name\">",
            n->failures > 0 ? " data-changed" : "", open ? " open" : "");
    page_escape_name(h->f, r->cases[c].id);
    fputs("</span><span class=\"tag\">", h->f);
    page_escape(h->f, html_engine(r));
    fputs("</span>", h->f);
    tag(h, "worse", n->failures, "fail");
    tag(h, "", n->of[JUDGE_BLOCKED], "blocked");
    tag(h, "open", n->of[JUDGE_INCOMPLETE] + n->of[JUDGE_SKIP], "open");
    tag(h, n->failures == 0 ? "better" : "", n->of[JUDGE_PASS], "pass");
    fputs("</summary>\n<div class=\"body\">\n", h->f);
}

/* Writes the numbers that the text report has in the line of the case. */
static void case_numbers(const struct html *h, const struct judge_case *c)
{
    char a[PAGE_NUMBER_BYTES];
    char b[PAGE_NUMBER_BYTES];

    if (c->outcome != JUDGE_PASS) {
        fprintf(h->f, "<p>%s: ", judge_outcome_name(c->outcome));
        page_escape(h->f, c->reason);
        fputs("</p>\n", h->f);
    }
    fputs("<ul class=\"legend numbers\">", h->f);
    if (c->has_losses) {
        fprintf(h->f,
                "<li>final loss <b>%.9g</b></li><li>losses off <b>%u of "
                "%u</b></li>",
                (double)c->final_loss, c->losses_off, c->n_losses);
    }
    if (c->has_counts) {
        fprintf(h->f,
                "<li>peak of parameters <b>%s</b> of %s</li>"
                "<li>collectives of a step <b>%u</b> of %u</li>",
                page_count(c->peak, a), page_count(c->peak_expected, b),
                c->collectives, c->collectives_expected);
    }
    fputs("</ul>\n", h->f);
}

static void case_failures(struct html *h, uint32_t part, uint32_t c)
{
    const struct judge_result *r = h->part[part].result;

    for (uint32_t q = 0; q < r->n_requirements; q++) {
        if (!r->reported[q] || !judge_is_failure(judge_item_at(r, c, q))) {
            continue;
        }
        if (h->n_failures == FAILURES_MOST) {
            fputs("<p class=\"what\"><span class=\"tag worse\">fail"
                  "</span> ",
                  h->f);
            html_link_requirement(h, r->requirement[q]);
            fputs(" <span class=\"dim\">(see the report)</span></p>\n", h->f);
            continue;
        }
        h->n_failures++;
        fprintf(h->f, "<div class=\"failure\" id=\"f%u-%u-%u\">", part, c, q);
        html_failure(h, part, c, q);
        fputs("</div>\n", h->f);
    }
}

/* Names all requirements that one failed requirement blocks in the case. */
static void blocked_by(const struct html *h, uint32_t part, uint32_t c,
                       uint32_t by)
{
    const struct judge_result *r = h->part[part].result;
    bool first = true;

    for (uint32_t q = 0; q < r->n_requirements; q++) {
        const struct judge_item *item = judge_item_at(r, c, q);

        if (!r->reported[q] || item->outcome != JUDGE_BLOCKED ||
            item->blocked_by != by) {
            continue;
        }
        if (first) {
            fputs("<p class=\"dim\">Blocked by ", h->f);
            html_link_requirement(h, r->requirement[by]);
        }
        fprintf(h->f, "%s %s", first ? ":" : ",", r->requirement[q]->id);
        first = false;
    }
    fputs(first ? "" : "</p>\n", h->f);
}

static void case_blocked(const struct html *h, uint32_t part, uint32_t c)
{
    for (uint32_t q = 0; q < h->part[part].result->n_requirements; q++) {
        blocked_by(h, part, c, q);
    }
}

static void one_case(struct html *h, uint32_t part, uint32_t c, bool open)
{
    const struct judge_result *r = h->part[part].result;
    const struct html_counts n = html_count_case(r, c);

    case_head(h, part, c, &n, open);
    case_numbers(h, &r->cases[c]);
    case_failures(h, part, c);
    fputs("<div class=\"plots\">\n", h->f);
    html_show_picture(h, part, c);
    html_show_records(h, part, c);
    fputs("</div>\n", h->f);
    if (n.of[JUDGE_BLOCKED] > 0) {
        case_blocked(h, part, c);
    }
    fputs("</div></details>\n", h->f);
}

void html_cases(struct html *h)
{
    uint32_t open = 0;
    uint32_t n = 0;

    for (uint32_t p = 0; p < h->n; p++) {
        n += h->part[p].result->n_cases;
    }
    fputs("<h2 id=\"cases\">Cases</h2>\n", h->f);
    page_put_tools(h->f, "words of a case, an engine, a requirement that fails",
                   "failures only", n);
    for (uint32_t p = 0; p < h->n; p++) {
        const struct judge_result *r = h->part[p].result;

        for (uint32_t c = 0; c < r->n_cases; c++) {
            if (r->cases[c].outcome != JUDGE_NOT_CLAIMED) {
                one_case(h, p, c, n <= 3 && open < OPEN_MOST);
                open++;
            }
        }
    }
}

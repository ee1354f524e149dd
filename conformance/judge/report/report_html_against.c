/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_html_against.c - compares a report with that of an earlier run: what
 * began to fail, what is right again, what is no longer judged, and which exact
 * figures have changed by how much.
 */
#include "judge/draw/page_text.h"
#include "judge/report/report_html_internal.h"

#include <stdlib.h>
#include <string.h>

enum {
    CASES_MOST = 4,     /* of a row, by name */
    FIGURES_MOST = 120, /* rows */
};

/* How an item changed since the earlier run. */
enum change {
    CHANGE_NONE = 0,
    CHANGE_FAILS,  /* fails now; it passed then, or was not judged */
    CHANGE_MENDED, /* passes, and failed */
    CHANGE_OPEN,   /* passed; now it is blocked, or not judged */
    N_CHANGES,
};

static const struct {
    const char *css, *name;
} change_words[N_CHANGES] = {[CHANGE_FAILS] = {"worse", "began to fail"},
                             [CHANGE_MENDED] = {"better", "is right again"},
                             [CHANGE_OPEN] = {"open", "no longer passes"}};

/* The index of a case in the earlier report; JUDGE_NONE: it is not there. */
static uint32_t html_case_then(const struct html *h, uint32_t part, uint32_t c)
{
    const struct judge_result *then = h->against ? h->against[part] : NULL;
    const char *id = h->part[part].result->cases[c].id;
    uint32_t i = 0;

    if (!then) {
        return JUDGE_NONE;
    }
    /* Runs that selected the same cases have them in the same order. */
    if (c < then->n_cases && strcmp(then->cases[c].id, id) == 0) {
        return c;
    }
    while (i < then->n_cases && strcmp(then->cases[i].id, id) != 0) {
        i++;
    }
    return i < then->n_cases ? i : JUDGE_NONE;
}

static uint32_t change_of(const struct html *h, uint32_t part, uint32_t c,
                          uint32_t d, uint32_t q)
{
    const struct judge_result *now = h->part[part].result;
    const struct judge_result *then = h->against[part];
    const struct judge_item *x;
    const struct judge_item *y;

    if (d == JUDGE_NONE || !now->reported[q] || !then->reported[q]) {
        return CHANGE_NONE;
    }
    x = judge_item_at(now, c, q);
    y = judge_item_at(then, d, q);
    if (judge_is_failure(x) != judge_is_failure(y)) {
        return judge_is_failure(x)        ? CHANGE_FAILS
               : x->outcome == JUDGE_PASS ? CHANGE_MENDED
                                          : CHANGE_NONE;
    }
    return y->outcome == JUDGE_PASS && x->outcome != JUDGE_PASS ? CHANGE_OPEN
                                                                : CHANGE_NONE;
}

bool html_is_new_failure(const struct html *h, uint32_t part, uint32_t c,
                         uint32_t q)
{
    const uint32_t d = html_case_then(h, part, c);

    return d != JUDGE_NONE && change_of(h, part, c, d, q) == CHANGE_FAILS;
}

/* ---- Outcomes ---------------------------------------------------------- */

/* Lists the cases in which requirement q changed in this way, if any did. */
static void outcome_row(struct html *h, uint32_t part, uint32_t q,
                        uint32_t change, const uint32_t *then)
{
    const struct judge_result *r = h->part[part].result;
    uint32_t n = 0;

    for (uint32_t c = 0; c < r->n_cases; c++) {
        if (change_of(h, part, c, then[c], q) != change) {
            continue;
        }
        if (n == 0) {
            fprintf(h->f, "<tr><td class=\"%s\">%s</td><td>",
                    change_words[change].css, change_words[change].name);
            html_link_requirement(h, r->requirement[q]);
            fputs("</td><td data-l=\"engine\">", h->f);
            page_escape(h->f, html_engine(r));
            fputs("</td><td class=\"wide\"><ul class=\"cases\">", h->f);
        }
        if (n++ < CASES_MOST) {
            fputs("<li>", h->f);
            html_link_case(h, part, c);
            fputs("</li>", h->f);
        }
    }
    if (n > CASES_MOST) {
        fprintf(h->f, "<li>and %u more</li>", n - CASES_MOST);
    }
    if (n > 0) {
        fprintf(h->f,
                "</ul></td><td class=\"n\" data-l=\"cases\">%u"
                "</td></tr>\n",
                n);
    }
}

/* ---- Figures ----------------------------------------------------------- */

static void figure_row(struct html *h, uint32_t part, uint32_t c,
                       const char *name, uint64_t before, uint64_t after)
{
    char a[PAGE_NUMBER_BYTES];
    char b[PAGE_NUMBER_BYTES];

    fprintf(h->f, "<tr><td>%s</td><td data-l=\"engine\">", name);
    page_escape(h->f, html_engine(h->part[part].result));
    fputs("</td><td class=\"wide\">", h->f);
    html_link_case(h, part, c);
    fprintf(h->f,
            "</td><td class=\"n\" data-l=\"before\">%s</td>"
            "<td class=\"n\" data-l=\"now\">%s</td><td class=\"n\" "
            "data-l=\"change\">",
            page_count(before, a), page_count(after, b));
    if (before > 0) {
        fprintf(h->f, "%+.2f&#8239;%%",
                100.0 * ((double)after / (double)before - 1.0));
    }
    fputs("</td></tr>\n", h->f);
}

/* Lists figures that differ, as far as the page has room; returns their
 * number. */
static uint32_t figures_of(struct html *h, uint32_t part, uint32_t c,
                           uint32_t d, uint32_t shown)
{
    const struct judge_figures *now = h->part[part].result->cases[c].figures;
    const struct judge_figures *then =
        d != JUDGE_NONE ? h->against[part]->cases[d].figures : NULL;
    uint32_t n = 0;

    for (uint32_t i = 0; i < JUDGE_N_FIGURES && now && then; i++) {
        if (now->figure[i] != then->figure[i]) {
            if (shown + n < FIGURES_MOST) {
                figure_row(h, part, c, judge_figure_name(i), then->figure[i],
                           now->figure[i]);
            }
            n++;
        }
    }
    return n;
}

/* ---- In all ------------------------------------------------------------ */

/* Says which cases only one of the two runs has. */
static void cases_of_one(struct html *h, uint32_t part, const uint32_t *then)
{
    const struct judge_result *now = h->part[part].result;
    uint32_t known = 0;

    for (uint32_t c = 0; c < now->n_cases; c++) {
        known += then[c] != JUDGE_NONE ? 1 : 0;
    }
    fputs("<p class=\"dim\">", h->f);
    page_escape(h->f, html_engine(now));
    fprintf(h->f,
            ": %s then, %s now; %u cases of both runs, %u new, %u "
            "gone.</p>\n",
            judge_verdict_name(h->against[part]->verdict),
            judge_verdict_name(now->verdict), known, now->n_cases - known,
            h->against[part]->n_cases - known);
}

static void outcomes(struct html *h, uint32_t *const *then)
{
    fputs("<div class=\"scroll\"><table class=\"changes\"><thead><tr>"
          "<th></th><th>requirement</th><th>engine</th><th>cases</th>"
          "<th class=\"n\"></th></tr></thead><tbody>\n",
          h->f);
    for (uint32_t change = CHANGE_FAILS; change < N_CHANGES; change++) {
        for (uint32_t p = 0; p < h->n; p++) {
            for (uint32_t q = 0; q < h->part[p].result->n_requirements; q++) {
                outcome_row(h, p, q, change, then[p]);
            }
        }
    }
    fputs("</tbody></table></div>\n", h->f);
}

static void figures(struct html *h, uint32_t *const *then)
{
    uint32_t n = 0;

    fputs("<h3>Exact figures that changed</h3>\n<div class=\"scroll\">"
          "<table class=\"changes\"><thead><tr><th>figure</th>"
          "<th>engine</th><th>case</th><th class=\"n\">before</th>"
          "<th class=\"n\">now</th><th class=\"n\">change</th></tr>"
          "</thead><tbody>\n",
          h->f);
    for (uint32_t p = 0; p < h->n; p++) {
        for (uint32_t c = 0; c < h->part[p].result->n_cases; c++) {
            n += figures_of(h, p, c, then[p][c], n);
        }
    }
    fputs("</tbody></table></div>\n", h->f);
    if (n > FIGURES_MOST) {
        fprintf(h->f, "<p class=\"dim\">And %u more.</p>\n", n - FIGURES_MOST);
    } else if (n == 0) {
        fputs("<p class=\"dim\">None.</p>\n", h->f);
    }
}

int html_against(struct html *h)
{
    uint32_t **then;
    int status = FSDP_OK;

    if (!h->against) {
        return FSDP_OK;
    }
    then = calloc(h->n, sizeof(*then));
    for (uint32_t p = 0; p < h->n && then && status == FSDP_OK; p++) {
        const uint32_t n = h->part[p].result->n_cases;

        then[p] = calloc(n + 1u, sizeof(**then));
        status = then[p] ? FSDP_OK : FSDP_ERR_NOMEM;
        for (uint32_t c = 0; c < n && status == FSDP_OK; c++) {
            then[p][c] = html_case_then(h, p, c);
        }
    }
    status = then ? status : FSDP_ERR_NOMEM;
    if (status == FSDP_OK) {
        fputs("<h2 id=\"against\">Since the earlier run</h2>\n", h->f);
        for (uint32_t p = 0; p < h->n; p++) {
            cases_of_one(h, p, then[p]);
        }
        outcomes(h, then);
        figures(h, then);
    }
    for (uint32_t p = 0; p < h->n && then; p++) {
        free(then[p]);
    }
    free(then);
    return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_html_kills.c - the kill matrix: engines that are known to be wrong in
 * one way, and the requirements that each fails before all others. It says what
 * each requirement is worth, and which known mistake looks like this run's.
 */
#include "judge/draw/page_text.h"
#include "judge/report/report_html_internal.h"

#include <stdlib.h>

enum {
    IDS = 176, /* where the names of rows end */
    COLUMN = 4,
    ROW = 9,
    TOP = 4,
    ALIKE_MOST = 6
};

/* Rows are requirements, by level; columns are mutants, by their first row. */
struct kills {
    struct html *h;
    const struct judge_result *r;
    uint32_t *row_of;      /* [requirements]; JUDGE_NONE: no mutant fails it */
    uint32_t *requirement; /* [n_rows] */
    uint32_t n_rows;
    uint32_t *mutant; /* [n_columns] */
    uint32_t n_columns;
    uint32_t n; /* marks */
};

/* The next requirement in a list; false: there is none. Ids that are not in
 * this report are passed over. */
static bool next_kill(const struct judge_result *r, const char **at,
                      uint32_t *q)
{
    char id[REQUIREMENT_ID_BYTES];

    do {
        if (!requirement_next_need(at, id)) {
            return false;
        }
        *q = requirement_index(r->requirement, id);
    } while (*q == r->n_requirements);
    return true;
}

static bool fails_here(const struct html *h, uint32_t q)
{
    bool fails = false;

    for (uint32_t p = 0; p < h->n && !fails; p++) {
        fails = html_count_requirement(h->part[p].result, q).failures > 0;
    }
    return fails;
}

/* ---- The engines that fail as this one does ----------------------------- */

/* How many of the requirements that kill a mutant fail here, too. 0: the first
 * cause is not among them, or one of them does not fail here. */
static uint32_t alike(const struct judge_result *r, uint32_t first,
                      const char *kills)
{
    bool has_first = false;
    uint32_t n = 0;
    uint32_t q;

    while (next_kill(r, &kills, &q)) {
        if (html_count_requirement(r, q).failures == 0) {
            return 0;
        }
        has_first = has_first || q == first;
        n++;
    }
    return has_first ? n : 0;
}

void html_alike(struct html *h, uint32_t part)
{
    const struct judge_result *r = h->part[part].result;
    uint32_t most = 1;
    uint32_t shown = 0;
    uint32_t first;
    uint32_t c;

    if (!judge_first_cause(r, &c, &first)) {
        return;
    }
    for (uint32_t i = 0; i < h->n_mutants; i++) {
        const uint32_t n = alike(r, first, h->mutant[i].kills);

        most = n > most ? n : most;
    }
    for (uint32_t i = 0; i < h->n_mutants && shown < ALIKE_MOST; i++) {
        const struct report_mutant *m = &h->mutant[i];

        if (alike(r, first, m->kills) == most) {
            fprintf(h->f,
                    "%s<dt><a href=\"#k-%s\"><code>%s</code></a></dt>"
                    "<dd>",
                    shown++ == 0 ? "<h4>Mistakes that fail so, too</h4>\n"
                                   "<dl class=\"alike\">\n"
                                 : "",
                    m->name, m->name);
            page_escape(h->f, m->text);
            fputs("</dd>\n", h->f);
        }
    }
    fputs(shown > 0 ? "</dl>\n" : "", h->f);
}

/* ---- The matrix ---------------------------------------------------------- */

static uint32_t first_row(const struct kills *k, uint32_t mutant)
{
    const char *at = k->h->mutant[mutant].kills;
    uint32_t first = JUDGE_NONE;
    uint32_t q;

    while (next_kill(k->r, &at, &q)) {
        first = k->row_of[q] < first ? k->row_of[q] : first;
    }
    return first;
}

static void find_rows(struct kills *k)
{
    for (uint32_t q = 0; q < k->r->n_requirements; q++) {
        k->row_of[q] = JUDGE_NONE;
    }
    for (uint32_t i = 0; i < k->h->n_mutants; i++) {
        const char *at = k->h->mutant[i].kills;
        uint32_t q;

        while (next_kill(k->r, &at, &q)) {
            k->row_of[q] = 0;
            k->n++;
        }
    }
    for (uint32_t l = 0; l < N_LEVELS; l++) {
        for (uint32_t q = 0; q < k->r->n_requirements; q++) {
            if (k->r->requirement[q]->level == l && k->row_of[q] == 0) {
                k->requirement[k->n_rows] = q;
                k->n_rows++;
            }
        }
    }
    for (uint32_t i = 0; i < k->n_rows; i++) {
        k->row_of[k->requirement[i]] = i;
    }
}

static void find_columns(struct kills *k)
{
    for (uint32_t row = 0; row < k->n_rows; row++) {
        for (uint32_t i = 0; i < k->h->n_mutants; i++) {
            if (first_row(k, i) == row) {
                k->mutant[k->n_columns++] = i;
            }
        }
    }
}

static void draw_rows(const struct kills *k, uint32_t width)
{
    FILE *f = k->h->f;
    uint32_t level = 0;

    for (uint32_t i = 0; i < k->n_rows; i++) {
        const struct requirement *q = k->r->requirement[k->requirement[i]];
        const uint32_t y = TOP + ROW * i;

        if (fails_here(k->h, k->requirement[i])) {
            fprintf(f,
                    "<rect class=\"here\" x=\"0\" y=\"%u\" width=\"%u\" "
                    "height=\"%d\"/>",
                    y, width, ROW);
        }
        if (i == 0 || q->level != level) {
            fprintf(f, "<path class=\"rule\" d=\"M0 %uH%u\"/>", y, width);
            level = q->level;
        }
        fprintf(f, "<text x=\"%d\" y=\"%u\">%s</text>\n", IDS, y + 7, q->id);
    }
}

static void draw_columns(const struct kills *k)
{
    FILE *f = k->h->f;

    for (uint32_t i = 0; i < k->n_columns; i++) {
        const struct report_mutant *m = &k->h->mutant[k->mutant[i]];
        const char *at = m->kills;
        uint32_t q;

        fprintf(f, "<path class=\"kill\" d=\"");
        while (next_kill(k->r, &at, &q)) {
            fprintf(f, "M%u %uh%dv%dh-%dz", IDS + 6 + COLUMN * i,
                    TOP + 1 + ROW * k->row_of[q], COLUMN - 1, ROW - 2,
                    COLUMN - 1);
        }
        fprintf(f, "\"><title>%s</title></path>\n", m->name);
    }
}

static void draw_kills(const struct kills *k)
{
    const uint32_t width = IDS + 6 + COLUMN * k->n_columns + 4;
    const uint32_t height = TOP + ROW * k->n_rows + 2;
    const uint32_t id = ++k->h->n_ids;

    fprintf(k->h->f,
            "<figure class=\"wide\"><svg class=\"kills\" viewBox=\"0 0 "
            "%u %u\" role=\"img\" aria-labelledby=\"t%u\"><title "
            "id=\"t%u\">%u engines that are wrong, and the %u "
            "requirements that they fail; the list below says which"
            "</title>\n",
            width, height, id, id, k->n_columns, k->n_rows);
    draw_rows(k, width);
    draw_columns(k);
    fputs("</svg></figure>\n<ul class=\"legend\"><li><i class=\"kill\">"
          "</i>fails, before all else</li><li><i class=\"here\"></i>"
          "failed in this run</li></ul>\n",
          k->h->f);
}

static void list(const struct kills *k)
{
    FILE *f = k->h->f;

    fputs("<dl class=\"why\">\n", f);
    for (uint32_t i = 0; i < k->n_columns; i++) {
        const struct report_mutant *m = &k->h->mutant[k->mutant[i]];
        const char *at = m->kills;
        const char *between = "";
        uint32_t q;

        fprintf(f, "<dt id=\"k-%s\"><code>%s</code></dt><dd>", m->name,
                m->name);
        page_escape(f, m->text);
        fputs(": ", f);
        while (next_kill(k->r, &at, &q)) {
            fputs(between, f);
            html_link_requirement(k->h, k->r->requirement[q]);
            between = ", ";
        }
        fputs("</dd>\n", f);
    }
    fputs("</dl>\n", f);
}

static void section(struct kills *k)
{
    find_rows(k);
    find_columns(k);
    fprintf(k->h->f,
            "<h2 id=\"kills\">Kill matrix</h2>\n<p class=\"dim\">Engines "
            "that are known to be wrong in one way, from left to right, "
            "and what each must fail: the suite is tested by "
            "them.</p>\n<details class=\"how\"><summary>%u wrong "
            "engines, %u requirements, %u marks</summary>\n",
            k->n_columns, k->n_rows, k->n);
    draw_kills(k);
    list(k);
    fputs("</details>\n", k->h->f);
}

int html_kills(struct html *h)
{
    struct kills k = {.h = h, .r = h->part[0].result};
    const uint32_t n = k.r->n_requirements;
    int status = FSDP_ERR_NOMEM;

    if (h->n_mutants == 0) {
        return FSDP_OK;
    }
    k.row_of = calloc((size_t)n + 1, sizeof(*k.row_of));
    k.requirement = calloc((size_t)n + 1, sizeof(*k.requirement));
    k.mutant = calloc(h->n_mutants, sizeof(*k.mutant));
    if (k.row_of && k.requirement && k.mutant) {
        section(&k);
        status = FSDP_OK;
    }
    free(k.row_of);
    free(k.requirement);
    free(k.mutant);
    return status;
}

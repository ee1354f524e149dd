/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_pipeline.c - the result as pipelines show it beside a change: a page,
 * annotations, findings of code quality. Each requirement that failed is one
 * finding, however many cases share it; causes stand first.
 */
#include "judge/report/report_pipeline.h"
#include "judge/report/report_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_ANNOTATIONS = 10,
    MAX_ROWS = 20
};

/* A requirement that failed, the case to look at, and the number of cases. */
struct failed {
    const struct judge_result *r;
    uint32_t c, q, cases;
};

static int compare_failed(const void *a, const void *b)
{
    const struct failed *x = a;
    const struct failed *y = b;

    return judge_compare_causes(x->r, x->c, x->q, y->c, y->q);
}

/* All requirements that failed, sorted; *n is their number. NULL: no memory. */
static struct failed *list_failed(const struct judge_result *r, uint32_t *n)
{
    struct failed *list = calloc((size_t)r->n_requirements + 1, sizeof(*list));

    *n = 0;
    for (uint32_t q = 0; list && q < r->n_requirements; q++) {
        struct failed *one = &list[*n];

        for (uint32_t c = 0; r->reported[q] && c < r->n_cases; c++) {
            if (!judge_is_failure(judge_item_at(r, c, q))) {
                continue;
            }
            if (one->cases == 0 ||
                judge_compare_causes(r, c, q, one->c, q) < 0) {
                one->c = c;
            }
            one->cases++;
        }
        if (one->cases > 0) {
            one->r = r;
            one->q = q;
            (*n)++;
        }
    }
    if (list) {
        qsort(list, *n, sizeof(*list), compare_failed);
    }
    return list;
}

static uint32_t bad(const uint32_t count[JUDGE_N_OUTCOMES])
{
    return count[JUDGE_FAIL] + count[JUDGE_ERROR] + count[JUDGE_TIMEOUT];
}

/* ---- Markdown ---- */

/* Writes text in a cell of a table; characters of Markdown and HTML are
 * escaped. */
static void put_cell(FILE *f, const char *s)
{
    for (; *s != '\0'; s++) {
        if (strchr("|\\`*_<>[]", *s)) {
            fputc('\\', f);
        }
        fputc(*s, f);
    }
}

static void put_levels(FILE *f, const struct judge_result *r)
{
    fputs("\n| level | pass | fail | blocked |\n|---|--:|--:|--:|\n", f);
    for (uint32_t l = 0; l < N_LEVELS; l++) {
        const uint32_t *n = r->level[l].count;

        if (n[JUDGE_PASS] + bad(n) + n[JUDGE_BLOCKED] > 0) {
            fprintf(f, "| %s | %" PRIu32 " | %" PRIu32 " | %" PRIu32 " |\n",
                    requirement_level_name(l), n[JUDGE_PASS], bad(n),
                    n[JUDGE_BLOCKED]);
        }
    }
}

static void put_rows(FILE *f, const struct failed *list, uint32_t n)
{
    char why[REPORT_LINE_BYTES];

    fputs("\n| failed | cases | in the first of them |\n|---|--:|---|\n", f);
    for (uint32_t i = 0; i < n && i < MAX_ROWS; i++) {
        const struct requirement *q = list[i].r->requirement[list[i].q];

        fprintf(f, "| `%s` (%s) | %" PRIu32 " | ", q->id,
                q->must != 0 ? "MUST" : "SHOULD", list[i].cases);
        put_cell(f, report_why(list[i].r, list[i].c, list[i].q, why));
        fputs(" |\n", f);
    }
    if (n > MAX_ROWS) {
        fprintf(f, "\nand %" PRIu32 " requirements more\n", n - MAX_ROWS);
    }
}

int report_markdown(FILE *f, const struct judge_result *r,
                    const struct report_meta *meta)
{
    char text[REPORT_LINE_BYTES];
    char why[REPORT_LINE_BYTES];
    uint32_t n;
    struct failed *list = list_failed(r, &n);

    if (!list) {
        return FSDP_ERR_NOMEM;
    }
    fprintf(f, "### %s: ", judge_verdict_name(r->verdict));
    put_cell(f, report_printable(r->engine[0] != '\0' ? r->engine : "no engine",
                                 text));
    fprintf(f,
            "\n\n%" PRIu32 " of %" PRIu32 " cases judged, %" PRIu32
            " not claimed; %" PRIu32 " pass, %" PRIu32 " fail, %" PRIu32
            " blocked.",
            r->executed, r->expected, r->not_claimed, r->count[JUDGE_PASS],
            bad(r->count), r->count[JUDGE_BLOCKED]);
    if (r->reason[0] != '\0') {
        fputc(' ', f);
        put_cell(f, report_printable(r->reason, text));
    }
    fputc('\n', f);
    if (n > 0) {
        fputs("\n```\n", f);
        report_first_cause(f, r, meta);
        fputs("```\n", f);
        put_rows(f, list, n);
    }
    if (report_drawn_is_finding(r)) {
        fprintf(
            f,
            "\n`%s`: the first of the drawn scripts that fail\n\n"
            "```\n%s\n```\n",
            REPORT_DRAWN_ID,
            report_printable(report_drawn_rerun(meta, &r->drawn, why), text));
    }
    put_levels(f, r);
    fputc('\n', f);
    free(list);
    return FSDP_OK;
}

/* ---- Workflow commands ---- */

/* Writes text in a message, or in a property, which colons and commas would
 * end. */
static void put_command(FILE *f, const char *s, bool property)
{
    for (; *s != '\0'; s++) {
        if (*s == '%' || (property && strchr(":,", *s))) {
            fprintf(f, "%%%02X", (unsigned int)(unsigned char)*s);
        } else {
            fputc(*s, f);
        }
    }
}

/* Writes lines of a message; as a new line would end it, %0A stands between
 * them. */
static void put_lines(FILE *f, const struct failed *one,
                      const struct report_meta *meta)
{
    const struct judge_result *r = one->r;
    char line[REPORT_LINE_BYTES];

    put_command(f, r->requirement[one->q]->text, false);
    fputs("%0A", f);
    put_command(f, report_why(r, one->c, one->q, line), false);
    fprintf(f, "%%0A%" PRIu32 " case%s, first: %s", one->cases,
            one->cases > 1 ? "s" : "", r->cases[one->c].id);
    if (meta->rerun) {
        char clean[REPORT_LINE_BYTES];

        fputs("%0Arerun: ", f);
        put_command(f,
                    report_printable(
                        report_rerun(meta, &r->cases[one->c], line), clean),
                    false);
    }
    fputc('\n', f);
}

static void annotate_drawn(FILE *f, const struct judge_result *r,
                           const struct report_meta *meta)
{
    char line[REPORT_LINE_BYTES];
    char clean[REPORT_LINE_BYTES];

    if (!report_drawn_is_finding(r)) {
        return;
    }
    fprintf(f, "::error title=%s of ", REPORT_DRAWN_ID);
    put_command(f, report_printable(r->engine, line), true);
    fprintf(f, "::%s%%0A", REPORT_DRAWN_TEXT);
    put_command(f, report_drawn_why(&r->drawn, line), false);
    fputs("%0Arerun: ", f);
    put_command(
        f, report_printable(report_drawn_rerun(meta, &r->drawn, line), clean),
        false);
    fputc('\n', f);
}

int report_annotations(FILE *f, const struct judge_result *r,
                       const struct report_meta *meta)
{
    char text[REPORT_LINE_BYTES];
    uint32_t n;
    struct failed *list = list_failed(r, &n);

    if (!list) {
        return FSDP_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < n && i < MAX_ANNOTATIONS; i++) {
        const struct requirement *q = r->requirement[list[i].q];

        fprintf(f, "::%s title=%s (%s)", q->must != 0 ? "error" : "warning",
                q->id, q->must != 0 ? "MUST" : "SHOULD");
        fputs(" of ", f);
        put_command(f, report_printable(r->engine, text), true);
        fputs("::", f);
        put_lines(f, &list[i], meta);
    }
    annotate_drawn(f, r, meta);
    if (r->reason[0] != '\0') {
        fprintf(f, "::notice title=%s::", judge_verdict_name(r->verdict));
        put_command(f, report_printable(r->reason, text), false);
        fputc('\n', f);
    }
    free(list);
    return FSDP_OK;
}

/* ---- Code quality ---- */

/* Writes a text of JSON; only printable ASCII is left in it. */
static void put_json(FILE *f, const char *s)
{
    char clean[REPORT_LINE_BYTES];

    fputc('"', f);
    for (s = report_printable(s, clean); *s != '\0'; s++) {
        if (*s == '"' || *s == '\\') {
            fputc('\\', f);
        }
        fputc(*s, f);
    }
    fputc('"', f);
}

/* The fingerprint is made of engine and requirement, so that a requirement that
 * failed before is not a new finding. */
static void put_finding(FILE *f, const struct judge_result *r, const char *id,
                        const char *description, uint32_t must,
                        const char *path, bool *first)
{
    char line[REPORT_LINE_BYTES];

    fputs(*first ? "\n " : ",\n ", f);
    *first = false;
    fputs("{\"description\": ", f);
    put_json(f, description);
    fprintf(f, ", \"check_name\": \"%s\", \"fingerprint\": ", id);
    snprintf(line, sizeof(line), "fsdp-cts:%s:%s", r->engine, id);
    put_json(f, line);
    fprintf(f, ", \"severity\": \"%s\", \"location\": {\"path\": ",
            must != 0 ? "major" : "minor");
    put_json(f, path);
    fputs(", \"lines\": {\"begin\": 1}}}", f);
}

int report_code_quality(FILE *f, const struct judge_result *r, const char *path,
                        bool *first)
{
    char line[2 * REPORT_LINE_BYTES];
    char why[REPORT_LINE_BYTES];
    uint32_t n;
    struct failed *list = list_failed(r, &n);

    if (!list) {
        return FSDP_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < n; i++) {
        const struct requirement *q = r->requirement[list[i].q];

        snprintf(line, sizeof(line), "%s, %" PRIu32 " cases: %s", r->engine,
                 list[i].cases, report_why(r, list[i].c, list[i].q, why));
        put_finding(f, r, q->id, line, q->must, path, first);
    }
    if (report_drawn_is_finding(r)) {
        snprintf(line, sizeof(line), "%s: %s", r->engine,
                 report_drawn_why(&r->drawn, why));
        put_finding(f, r, REPORT_DRAWN_ID, line, 1, path, first);
    }
    free(list);
    return FSDP_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* results_table.c - see results_table.h. */
#include "tools/submit/results_table.h"

#include <string.h>

struct results_cell results_cell(const struct judge_result *r,
                                 const char *requirement)
{
    struct results_cell cell = {0};
    uint32_t q = 0;

    while (q < r->n_requirements &&
           strcmp(r->requirement[q]->id, requirement) != 0) {
        q++;
    }
    for (uint32_t c = 0; c < r->n_cases && q < r->n_requirements; c++) {
        const struct judge_item *item = judge_item_at(r, c, q);

        cell.pass += item->outcome == JUDGE_PASS;
        cell.fail += explanations_wanted(item->outcome);
        cell.blocked += item->outcome == JUDGE_BLOCKED;
        if (item->detail && item->detail->finding.ratio > cell.ratio) {
            cell.ratio = item->detail->finding.ratio;
        }
    }
    return cell;
}

void results_put_text(FILE *f, const char *s)
{
    for (; *s != '\0'; s++) {
        if (*s == '|') {
            fputc('\\', f);
        }
        if (*s == '<') { /* Markdown lets HTML through */
            fputs("&lt;", f);
        } else {
            fputc(*s, f);
        }
    }
}

/* The same in a span of code, which it must not end. */
static void put_code(FILE *f, const char *s)
{
    fputc('`', f);
    for (; *s != '\0'; s++) {
        if (*s == '|') {
            fputc('\\', f);
        }
        fputc(*s == '`' ? '\'' : *s, f);
    }
    fputc('`', f);
}

static void put_verdict(FILE *f, const struct judge_result *r)
{
    fputs(judge_verdict_name(r->verdict), f);
    if (r->verdict == JUDGE_UNDECIDED && r->reason[0] != '\0') {
        fputs(": ", f);
        results_put_text(f, r->reason);
    }
}

static void put_implementations(FILE *f, const struct results_entry *entry,
                                uint32_t n)
{
    fputs("| implementation | release | cases | pass | fail | blocked | "
          "verdict |\n|---|---|---|---|---|---|---|\n",
          f);
    for (uint32_t i = 0; i < n; i++) {
        const struct judge_result *r = entry[i].r;

        fputs("| ", f);
        results_put_text(f, entry[i].s->about.name);
        fputs(" | ", f);
        results_put_text(f, entry[i].s->about.release);
        fprintf(f, " | %u%s | %u | %u | %u | ", r->executed,
                entry[i].s->whole ? "" : " (a selection)", r->count[JUDGE_PASS],
                r->count[JUDGE_FAIL] + r->count[JUDGE_ERROR] +
                    r->count[JUDGE_TIMEOUT],
                r->count[JUDGE_BLOCKED]);
        put_verdict(f, r);
        fputs(" |\n", f);
    }
}

static void put_how(FILE *f, const struct results_entry *entry, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const struct submission_about *a = &entry[i].s->about;

        fputs("\n- ", f);
        results_put_text(f, a->column);
        fputs(": ", f);
        results_put_text(f, a->hardware);
        for (uint32_t k = 0; k < a->n_software; k++) {
            fputs(k == 0 ? "; " : ", ", f);
            results_put_text(f, a->software[k]);
        }
        fprintf(f, "; %s: ", a->made);
        put_code(f, a->command);
        if (a->notes[0] != '\0') {
            fputs(". ", f);
            results_put_text(f, a->notes);
        }
    }
    fputs("\n", f);
}

static void put_failures(FILE *f, const struct results_entry *entry, uint32_t n)
{
    uint32_t rows = 0;

    fputs("\n## What fails, and why\n\n", f);
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < entry[i].x->n; k++) {
            const struct explanation *x = &entry[i].x->of[k];

            if (rows++ == 0) {
                fputs("| implementation | requirement: cases (how many) "
                      "| whose | why |\n|---|---|---|---|\n",
                      f);
            }
            fputs("| ", f);
            results_put_text(f, entry[i].s->about.column);
            fputs(" | ", f);
            put_code(f, x->requirement);
            fputs(": ", f);
            put_code(f, x->cases);
            fprintf(f, " (%u) | %s | ", x->n, explanation_whose_text(x->whose));
            results_put_text(f, x->why);
            fputs(" |\n", f);
        }
    }
    if (rows == 0) {
        fputs("Nothing.\n", f);
    }
}

static void put_cell(FILE *f, const struct results_cell *cell)
{
    const char *between = " ";

    if (cell->pass > 0) {
        fprintf(f, " %u", cell->pass);
        between = ", ";
    }
    if (cell->ratio > 0.0) {
        fprintf(f, " (%.2g)", cell->ratio);
    }
    if (cell->fail > 0) {
        fprintf(f, "%s**%u fail**", between, cell->fail);
        between = ", ";
    }
    if (cell->blocked > 0) {
        fprintf(f, "%s%u blocked", between, cell->blocked);
    }
    fputs(" |", f);
}

static void put_requirement(FILE *f, const struct results_entry *entry,
                            uint32_t n, const char *id)
{
    bool any = false;

    for (uint32_t i = 0; i < n; i++) {
        const struct results_cell cell = results_cell(entry[i].r, id);

        any = any || cell.pass + cell.fail + cell.blocked > 0;
    }
    if (!any) {
        return;
    }
    fprintf(f, "| `%s` |", id);
    for (uint32_t i = 0; i < n; i++) {
        const struct results_cell cell = results_cell(entry[i].r, id);

        put_cell(f, &cell);
    }
    fputs("\n", f);
}

int results_markdown(const struct results_entry *entry, uint32_t n, FILE *out)
{
    put_implementations(out, entry, n);
    put_how(out, entry, n);
    put_failures(out, entry, n);
    results_memory(entry, n, out);
    fputs("\n## By requirement\n\nCases passed; in brackets the greatest "
          "error over its bound.\n\n| requirement |",
          out);
    for (uint32_t i = 0; i < n; i++) {
        fputs(" ", out);
        results_put_text(out, entry[i].s->about.column);
        fputs(" |", out);
    }
    fputs("\n|---|", out);
    for (uint32_t i = 0; i < n; i++) {
        fputs("---|", out);
    }
    fputs("\n", out);
    for (uint32_t q = 0; n > 0 && q < entry[0].r->n_requirements; q++) {
        put_requirement(out, entry, n, entry[0].r->requirement[q]->id);
    }
    return ferror(out) == 0 ? FSDP_OK : FSDP_ERR_IO;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* results_releases.c - see results_table.h. */
#include "tools/submit/results_table.h"

#include "record/record_internal.h"

#include <string.h>

static bool same_release(const struct results_entry *a,
                         const struct results_entry *b)
{
    return strcmp(a->s->about.release, b->s->about.release) == 0;
}

static bool same_column(const struct results_entry *a,
                        const struct results_entry *b)
{
    return strcmp(a->s->about.column, b->s->about.column) == 0;
}

typedef bool same_fn(const struct results_entry *a,
                     const struct results_entry *b);

/* Rows and columns come in the order in which they are met. */
static bool is_first(const struct results_entry *entry, uint32_t i,
                     same_fn *same)
{
    for (uint32_t k = 0; k < i; k++) {
        if (same(&entry[k], &entry[i])) {
            return false;
        }
    }
    return true;
}

static int refuse_two(const struct results_entry *entry, uint32_t n,
                      struct fsdp_error *error)
{
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < i; k++) {
            if (same_release(&entry[k], &entry[i]) &&
                same_column(&entry[k], &entry[i])) {
                return record_fail(error, FSDP_ERR_FORMAT, "releases",
                                   "two bundles of %.60s, %.100s",
                                   entry[i].s->about.column,
                                   entry[i].s->about.release);
            }
        }
    }
    return FSDP_OK;
}

/* How many of the cases have a failure, of this requirement or (NULL) any. */
static uint32_t failing(const struct judge_result *r, const char *id)
{
    uint32_t n = 0;

    for (uint32_t c = 0; c < r->n_cases; c++) {
        bool fails = false;

        for (uint32_t q = 0; q < r->n_requirements && !fails; q++) {
            fails = (!id || strcmp(r->requirement[q]->id, id) == 0) &&
                    explanations_wanted(judge_item_at(r, c, q)->outcome);
        }
        n += fails;
    }
    return n;
}

static void put_place(FILE *f, const struct judge_result *r)
{
    const uint32_t n = failing(r, NULL);
    const char *between = ": ";

    if (n == 0) {
        fprintf(
            f, " %s %u |",
            r->count[JUDGE_BLOCKED] == 0 ? "pass" : "undecided:", r->executed);
        return;
    }
    fprintf(f, " **fail** %u of %u", n, r->executed);
    for (uint32_t q = 0; q < r->n_requirements; q++) {
        if (failing(r, r->requirement[q]->id) > 0) {
            fprintf(f, "%s`%s`", between, r->requirement[q]->id);
            between = ", ";
        }
    }
    fputs(" |", f);
}

static void put_rows(FILE *f, const struct results_entry *entry, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (!is_first(entry, i, same_release)) {
            continue;
        }
        fputs("| ", f);
        results_put_text(f, entry[i].s->about.release);
        fputs(" |", f);
        for (uint32_t k = 0; k < n; k++) {
            const struct results_entry *found = NULL;

            if (!is_first(entry, k, same_column)) {
                continue;
            }
            for (uint32_t j = 0; j < n && !found; j++) {
                if (same_release(&entry[i], &entry[j]) &&
                    same_column(&entry[k], &entry[j])) {
                    found = &entry[j];
                }
            }
            if (found) {
                put_place(f, found->r);
            } else {
                fputs(" |", f);
            }
        }
        fputs("\n", f);
    }
}

/* A row for each case and requirement that fails. */
static uint32_t put_failing(FILE *f, const struct results_entry *e)
{
    uint32_t rows = 0;

    for (uint32_t q = 0; q < e->r->n_requirements; q++) {
        for (uint32_t c = 0; c < e->r->n_cases; c++) {
            if (!explanations_wanted(judge_item_at(e->r, c, q)->outcome)) {
                continue;
            }
            fputs("| ", f);
            results_put_text(f, e->s->about.release);
            fputs(" | ", f);
            results_put_text(f, e->s->about.column);
            fprintf(f, " | `%s` | `%s` |\n", e->r->requirement[q]->id,
                    e->r->cases[c].id);
            rows++;
        }
    }
    return rows;
}

int results_releases(const struct results_entry *entry, uint32_t n, FILE *out,
                     struct fsdp_error *error)
{
    uint32_t rows = 0;
    const int status = refuse_two(entry, n, error);

    if (status != FSDP_OK) {
        return status;
    }
    fputs("| release |", out);
    for (uint32_t i = 0; i < n; i++) {
        if (is_first(entry, i, same_column)) {
            fputs(" ", out);
            results_put_text(out, entry[i].s->about.column);
            fputs(" |", out);
        }
    }
    fputs("\n|---|", out);
    for (uint32_t i = 0; i < n; i++) {
        fputs(is_first(entry, i, same_column) ? "---|" : "", out);
    }
    fputs("\n", out);
    put_rows(out, entry, n);
    fputs("\n## What fails\n\n"
          "| release | implementation | requirement | case |\n"
          "|---|---|---|---|\n",
          out);
    for (uint32_t i = 0; i < n; i++) {
        rows += put_failing(out, &entry[i]);
    }
    if (rows == 0) {
        fputs("| none | | | |\n", out);
    }
    results_changes(entry, n, out);
    return ferror(out) == 0 ? FSDP_OK : FSDP_ERR_IO;
}

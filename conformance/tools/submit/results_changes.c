/* SPDX-License-Identifier: Apache-2.0 */
/*
 * results_changes.c - see results_table.h. A requirement that held before, and
 * is now undecided because of another failure, is not mentioned.
 */
#include "tools/submit/results_table.h"

#include <string.h>

enum place {
    OPEN, /* blocked, or nothing was asked */
    RIGHT,
    WRONG
};

static const struct {
    enum place from, to;
    const char *said;
} change[] = {
    {RIGHT, WRONG, "begins to fail"},
    {OPEN, WRONG, "fails, was not decided"},
    {WRONG, RIGHT, "right again"},
    {WRONG, OPEN, "failed, is not decided"},
};

enum {
    N_CHANGES = sizeof(change) / sizeof(change[0])
};

static enum place place_of(const struct judge_result *r, uint32_t c, uint32_t q)
{
    const uint32_t outcome = judge_item_at(r, c, q)->outcome;

    return explanations_wanted(outcome) ? WRONG
           : outcome == JUDGE_PASS      ? RIGHT
                                        : OPEN;
}

/* Where the case stands in r; n_cases: nowhere. */
static uint32_t case_in(const struct judge_result *r, const char *id)
{
    uint32_t c = 0;

    while (c < r->n_cases && strcmp(r->cases[c].id, id) != 0) {
        c++;
    }
    return c;
}

/* Both were judged by this program, which has one list of requirements. */
static void count(const struct judge_result *a, const struct judge_result *b,
                  uint32_t q, uint32_t n[static N_CHANGES])
{
    memset(n, 0, N_CHANGES * sizeof(*n));
    for (uint32_t c = 0; c < b->n_cases; c++) {
        const uint32_t before = case_in(a, b->cases[c].id);

        for (uint32_t k = 0; k < N_CHANGES && before < a->n_cases; k++) {
            n[k] += place_of(a, before, q) == change[k].from &&
                    place_of(b, c, q) == change[k].to;
        }
    }
}

static uint32_t put_pair(FILE *f, const struct results_entry *a,
                         const struct results_entry *b)
{
    uint32_t n[N_CHANGES], rows = 0;

    for (uint32_t q = 0; q < b->r->n_requirements; q++) {
        count(a->r, b->r, q, n);
        for (uint32_t k = 0; k < N_CHANGES; k++) {
            if (n[k] == 0) {
                continue;
            }
            fputs("| ", f);
            results_put_text(f, b->s->about.column);
            fputs(" | ", f);
            results_put_text(f, a->s->about.release);
            fputs(" | ", f);
            results_put_text(f, b->s->about.release);
            fprintf(f, " | `%s` | %s | %u |\n", b->r->requirement[q]->id,
                    change[k].said, n[k]);
            rows++;
        }
    }
    return rows;
}

void results_changes(const struct results_entry *entry, uint32_t n, FILE *out)
{
    uint32_t rows = 0;

    fputs("\n## What changed\n\n"
          "| implementation | from | to | requirement | what | cases |\n"
          "|---|---|---|---|---|---|\n",
          out);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = i + 1;

        while (k < n && strcmp(entry[k].s->about.column,
                               entry[i].s->about.column) != 0) {
            k++;
        }
        rows += k < n ? put_pair(out, &entry[i], &entry[k]) : 0;
    }
    if (rows == 0) {
        fputs("| nothing | | | | | |\n", out);
    }
}

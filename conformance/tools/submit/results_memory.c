/* SPDX-License-Identifier: Apache-2.0 */
/*
 * results_memory.c - the most that implementations held, which claim that it
 * was measured, over the textbook's M/K + the largest unit; by strategy and
 * world.
 */
#include "tools/submit/results_table.h"

#include "judge/judge_adapter.h"

#include <string.h>

/* The greatest of the cases of a row. */
struct row {
    uint32_t n;
    double parameters, engine, storage; /* over M/K + the largest unit */
    uint64_t grown;
};

static bool is_measured(const struct judge_result *r)
{
    return judge_claims(r, "live-bytes");
}

static void take(double *most, uint64_t bytes, uint64_t of)
{
    const double ratio = (double)bytes / (double)of;

    *most = ratio > *most ? ratio : *most;
}

static void add(struct row *row, const struct judge_case *c)
{
    const uint64_t *figure = c->figures->figure;

    row->n++;
    take(&row->parameters, figure[JUDGE_PEAK_PARAMETERS], c->textbook);
    take(&row->engine, figure[JUDGE_PEAK_ENGINE], c->textbook);
    take(&row->storage, figure[JUDGE_PEAK_STORAGE], c->textbook);
    row->grown = c->grown > row->grown ? c->grown : row->grown;
}

/* Whether the case shows M/K + the largest unit: nothing is asked to run ahead,
 * and no unsharded unit is kept or summoned. */
static bool is_of_textbook(const struct judge_case *c)
{
    return c->figures && c->textbook > 0 && case_trains(&c->c) &&
           !case_is_script(&c->c) && c->c.scenario != CASE_SUMMON &&
           c->c.keep_root == 0 && c->c.prefetch_forward == 0 &&
           c->c.prefetch_backward == 0 && c->c.reduces_in_flight == 0;
}

static struct row row_of(const struct judge_result *r, uint32_t strategy,
                         uint32_t ranks)
{
    struct row row = {0};

    for (uint32_t i = 0; i < r->n_cases; i++) {
        const struct judge_case *c = &r->cases[i];

        if (is_of_textbook(c) && c->c.strategy == strategy &&
            c->c.ranks == ranks) {
            add(&row, c);
        }
    }
    return row;
}

static void put_row(FILE *f, const char *column, uint32_t strategy,
                    uint32_t ranks, const struct row *row)
{
    fputs("| ", f);
    results_put_text(f, column);
    fprintf(f, " | %s | %u | %u | %.2f | %.2f | %.2f | %.1f MB |\n",
            case_strategy_name(strategy), ranks, row->n, row->parameters,
            row->engine, row->storage, (double)row->grown / 1e6);
}

static const char heading[] =
    "\n## Memory\n\nThe most that a rank held at once, over M/K + the largest "
    "unit: its parameters, sharded and not; all that it holds (gradients, "
    "states, staging); the storage of that. Last, by how much a process "
    "grew. Of the cases of a row the greatest.\n\n"
    "| implementation | strategy | K | cases | parameters | all | storage | "
    "process |\n|---|---|---|---|---|---|---|---|\n";

void results_memory(const struct results_entry *entry, uint32_t n, FILE *out)
{
    bool any = false;

    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t s = 0; is_measured(entry[i].r) && s < CASE_N_STRATEGIES;
             s++) {
            for (uint32_t k = 1; k <= WORLD_MAX_RANKS; k++) {
                const struct row row = row_of(entry[i].r, s, k);

                if (row.n > 0) {
                    fputs(any ? "" : heading, out);
                    put_row(out, entry[i].s->about.column, s, k, &row);
                    any = true;
                }
            }
        }
    }
}

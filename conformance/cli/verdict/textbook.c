/* SPDX-License-Identifier: Apache-2.0 */
/*
 * textbook.c - prints the textbook's table: every number is read from the
 * records.
 */
#include "cli/verdict/textbook.h"
#include "cases/case_model.h"
#include "judge/judge_store.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The numbers that the table shows of one case; parameters, not bytes. */
struct figures {
    uint64_t total, largest, peak_full, peak_all;
    uint32_t units, gathers;
    float first, final, baseline_final, gap;
    bool known;
};

static bool is_miniature(const struct run_case *c, uint32_t wrap)
{
    return strcmp(c->workload, "mlp") == 0 && strcmp(c->size, "seed") == 0 &&
           c->data == WORKLOAD_NATURAL && c->scenario == CASE_TRAIN &&
           c->strategy == CASE_FULL_SHARD && c->wrap == wrap &&
           c->fold == FSDP_FOLD_RANK && c->microbatches == 1 &&
           c->optimizer == FSDP_OPTIMIZER_SGD && c->steps == 40 &&
           c->layout == FSDP_LAYOUT_FLAT && !c->keep_root;
}

static float folded(const struct expect *e, const struct record *r,
                    uint32_t step)
{
    float x[WORLD_MAX_RANKS] = {0};

    for (uint32_t k = 0; k < r->n_ranks && k < WORLD_MAX_RANKS; k++) {
        x[k] = step < r->rank[k].n_losses ? r->rank[k].loss[step] : NAN;
    }
    return expect_fold_loss(e, x);
}

static void compare_curves(const struct expect *e, const struct record *r,
                           const struct record *b, struct figures *f)
{
    f->first = folded(e, r, 0);
    for (uint32_t t = 0; t < e->c->steps; t++) {
        float gap;
        f->final = folded(e, r, t);
        f->baseline_final = folded(e, b, t);
        gap = fabsf(f->final - f->baseline_final);
        if (!(gap <= f->gap)) { /* true for NaN, too */
            f->gap = gap;
        }
    }
}

static void read_rank(const struct record_rank *rank, struct figures *f)
{
    uint64_t full = rank->memory.peak[FSDP_PARAM_FULL] / sizeof(float);
    uint64_t all = rank->memory.peak_parameters / sizeof(float);

    f->peak_full = full > f->peak_full ? full : f->peak_full;
    f->peak_all = all > f->peak_all ? all : f->peak_all;
    if (rank->n_steps && rank->step_sequence[0] < rank->n_sequences) {
        const struct record_sequence *q =
            &rank->sequence[rank->step_sequence[0]];
        f->gathers = 0;
        for (uint32_t i = 0; i < q->n; i++) {
            f->gathers += q->c[i].kind == FSDP_ALL_GATHER;
        }
    }
}

static struct figures look_up(struct judge_store *store,
                              const struct text *text, const struct run_case *c)
{
    struct figures f = {0};
    struct fsdp_error error = {0};
    struct case_model m = {0};
    struct expect e = {0};
    char id[CASE_ID_BYTES];
    char key[CASE_ID_BYTES];
    const struct record *r;
    const struct record *b;

    case_id(c, id);
    case_baseline_key(c, key);
    r = judge_store_record(store, id, &error);
    b = judge_store_baseline(store, key, &error);
    if (r && b &&
        case_model_make(c, text->bytes, text->n, &m, &error) == FSDP_OK &&
        expect_make(c, &m.model->model, &m.units.units, &e) == FSDP_OK) {
        f.known = true;
        f.total = e.total;
        f.units = m.units.units.n_units;
        for (uint32_t u = 0; u < f.units; u++) {
            f.largest =
                e.unit[u].numel > f.largest ? e.unit[u].numel : f.largest;
        }
        for (uint32_t k = 0; k < r->n_ranks; k++) {
            read_rank(&r->rank[k], &f);
        }
        compare_curves(&e, r, b, &f);
    }
    expect_release(&e);
    case_model_release(&m);
    return f;
}

static void print_output(const struct run_case *c, const struct figures *f)
{
    printf("The miniature (chapter 16.5, Output 16.5.1): mlp "
           "16-32-32-16-8, 40 steps\n");
    printf("  workers K                       : %u\n", c->ranks);
    printf("  whole-model parameters          : %llu\n",
           (unsigned long long)f->total);
    printf("  largest single FSDP unit        : %llu\n",
           (unsigned long long)f->largest);
    printf("  peak resident full params (FSDP): %llu\n",
           (unsigned long long)f->peak_full);
    printf("  peak / whole-model ratio        : %.3f\n",
           (double)f->peak_full / (double)f->total);
    printf("  peak of shards and unit, total  : %llu\n",
           (unsigned long long)f->peak_all);
    printf("  first loss                      : %.6e\n", (double)f->first);
    printf("  baseline final loss             : %.6e\n",
           (double)f->baseline_final);
    printf("  FSDP     final loss             : %.6e\n", (double)f->final);
    printf("  max loss-curve gap (all steps)  : %.2e\n", (double)f->gap);
}

static void print_exercise(struct judge_store *store,
                           const struct evaluate_input *e, uint32_t ranks)
{
    static const uint32_t wraps[] = {CASE_WRAP_WHOLE, CASE_WRAP_PAIR,
                                     CASE_WRAP_LAYER};
    struct figures f[3] = {{0}};

    for (uint32_t w = 0; w < 3; w++) {
        for (uint32_t i = 0; i < e->cases->n && !f[w].known; i++) {
            const struct run_case *c = &e->cases->c[i];
            if (is_miniature(c, wraps[w]) && c->ranks == ranks) {
                f[w] = look_up(store, e->text, c);
            }
        }
        if (!f[w].known) {
            return;
        }
    }
    printf("\n  Exercise 16.5.2: the wrapping boundary at K = %u\n"
           "  units  all-gathers/step  peak full  peak total  final loss    "
           "gap\n",
           ranks);
    for (uint32_t w = 0; w < 3; w++) {
        printf("  %5u  %16u  %9llu  %10llu  %.6e  %.2e\n", f[w].units,
               f[w].gathers, (unsigned long long)f[w].peak_full,
               (unsigned long long)f[w].peak_all, (double)f[w].final,
               (double)f[w].gap);
    }
}

void textbook_print(const struct evaluate_input *e,
                    const struct judge_result *r, bool asked)
{
    struct judge_store *store = NULL;
    bool book = false; /* K = 4, as the book has it, is among them */

    if ((judge_is_selection(r) && !asked) ||
        r->count[JUDGE_FAIL] + r->count[JUDGE_ERROR] + r->count[JUDGE_TIMEOUT] +
                r->count[JUDGE_INCOMPLETE] >
            0) {
        return;
    }

    for (uint32_t i = 0; i < e->cases->n; i++) {
        book = book || (is_miniature(&e->cases->c[i], CASE_WRAP_LAYER) &&
                        e->cases->c[i].ranks == 4);
    }
    if (evaluate_open_store(e, &store) != FSDP_OK) {
        judge_store_close(store);
        return;
    }
    for (uint32_t i = 0; i < e->cases->n; i++) {
        const struct run_case *c = &e->cases->c[i];
        struct figures f;
        if (!is_miniature(c, CASE_WRAP_LAYER) || (book && c->ranks != 4)) {
            continue;
        }
        f = look_up(store, e->text, c);
        if (f.known) {
            print_output(c, &f);
            print_exercise(store, e, c->ranks);
            printf("\n");
        }
        judge_store_next(store);
    }
    judge_store_close(store);
}

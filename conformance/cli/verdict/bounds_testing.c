/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bounds_testing.c - how far records are from the unsharded run, over what the
 * bounds allow, whatever else is wrong with them: the judge asks no bound where
 * what it needs has failed. Test only (bounds_test.sh).
 *
 * usage: bounds_ratio RECORDS CASE ...
 * Prints "REQUIREMENT RATIO", the greatest of all these cases.
 */
#include "cases/case_model.h"
#include "judge/judge.h"
#include "judge/judge_store.h"
#include "models/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const ids[] = {"grad.bound", "step.bound", "num.curve-bound",
                                  "step.final-bound"};
enum {
    N_IDS = sizeof(ids) / sizeof(ids[0])
};

static int ask(const struct expect *e, const struct record *r, double *ratio)
{
    for (uint32_t i = 0; i < N_IDS; i++) {
        const struct requirement *const *table = requirement_table();
        const struct requirement *q = table[requirement_index(table, ids[i])];
        struct finding f = {0};

        if (!q) {
            return FSDP_ERR_INTERNAL;
        }
        if (!requirement_applies(q, e)) {
            continue;
        }
        if (!requirement_holds(q, e, r, &f) && f.ratio <= 1.0) {
            fprintf(stderr, "bounds_ratio: %s: %s\n", ids[i], f.note);
            return FSDP_ERR_FORMAT; /* the record lacks something */
        }
        ratio[i] = f.ratio > ratio[i] ? f.ratio : ratio[i];
    }
    return FSDP_OK;
}

static int measure(struct judge_store *store, const struct text *text,
                   const char *id, double *ratio, struct fsdp_error *error)
{
    struct case_model m = {0};
    struct expect e = {0};
    struct run_case c;
    char key[CASE_ID_BYTES];
    const struct record *r = judge_store_record(store, id, error);
    int status;

    if (!r || !case_of_id(id, &c)) {
        return FSDP_ERR_FORMAT;
    }
    status = case_model_make(&c, text->bytes, text->n, &m, error);
    if (status == FSDP_OK) {
        status = expect_make_idle(&c, &m.model->model, &m.units.units,
                                  m.model->idle, &e);
    }
    if (status == FSDP_OK) {
        case_baseline_key(&c, key);
        e.baseline = judge_store_baseline(store, key, error);
        e.profile = EXPECT_OWN;
        status = e.baseline ? ask(&e, r, ratio) : FSDP_ERR_FORMAT;
    }
    expect_release(&e);
    case_model_release(&m);
    return status;
}

int main(int argc, char **argv)
{
    struct judge_store *store = NULL;
    struct fsdp_error error = {0};
    double ratio[N_IDS] = {0.0};
    struct text text;
    int status = text_load(NULL, &text, &error);

    if (argc < 3) {
        fprintf(stderr, "usage: bounds_ratio RECORDS CASE ...\n");
        return 64;
    }
    if (status == FSDP_OK) {
        status = judge_store_open(argv[1], NULL, &store);
    }
    for (int i = 2; i < argc && status == FSDP_OK; i++) {
        status = measure(store, &text, argv[i], ratio, &error);
    }
    for (uint32_t i = 0; i < N_IDS && status == FSDP_OK; i++) {
        printf("%s %.3g\n", ids[i], ratio[i]);
    }
    if (status != FSDP_OK) {
        fprintf(stderr, "bounds_ratio: %s\n",
                error.message[0] ? error.message : fsdp_status_text(status));
    }
    judge_store_close(store);
    text_release(&text);
    return status == FSDP_OK ? 0 : 65;
}

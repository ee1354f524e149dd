/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge_store_test.c - records from a folder: found, absent, malformed, and
 * still valid while the judge uses them.
 */
#include "judge/judge_store.h"
#include "judge/judge_testing.h"
#include "testing/unit_testing.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct folder {
    struct testing_run run;
    char path[64], id[CASE_ID_BYTES], key[CASE_ID_BYTES];
    struct judge_store *store;
};

static void write_record(const struct folder *f, const char *name,
                         const struct record *r)
{
    struct fsdp_error error = {0};
    char path[512];

    snprintf(path, sizeof(path), "%s/%s", f->path, name);
    assert_int_equal(record_write_case(path, r, &error), FSDP_OK);
    for (uint32_t k = 0; k < r->n_ranks; k++) {
        assert_int_equal(record_write_rank(path, k, &r->rank[k], &error),
                         FSDP_OK);
    }
}

/* Adds what writer and reader demand: sequences, steps, peaks that fit. */
static void complete(struct record *r)
{
    case_id(&r->c, r->id);
    memcpy(r->world, "local", sizeof("local"));
    for (uint32_t k = 0; k < r->n_ranks; k++) {
        struct record_rank *rank = &r->rank[k];

        rank->memory.peak[FSDP_PARAM_SHARD] = rank->memory.peak_parameters;
        rank->memory.peak_engine = rank->memory.peak_parameters;
        rank->n_sequences = 1;
        rank->sequence = calloc(1, sizeof(*rank->sequence));
        rank->n_steps = TESTING_STEPS;
        rank->step_sequence =
            calloc(TESTING_STEPS, sizeof(*rank->step_sequence));
        rank->memory.after_step =
            calloc(TESTING_STEPS, sizeof(*rank->memory.after_step));
        rank->memory.allocations =
            calloc(TESTING_STEPS, sizeof(*rank->memory.allocations));
        assert_non_null(rank->sequence);
        assert_non_null(rank->step_sequence);
        rank->memory.launches =
            calloc(TESTING_STEPS, sizeof(*rank->memory.launches));
        assert_non_null(rank->memory.launches);
        assert_non_null(rank->memory.after_step);
        assert_non_null(rank->memory.allocations);
    }
}

static int set_up(void **state)
{
    static struct folder f;
    char path[128];

    memset(&f, 0, sizeof(f));
    testing_run_make(&f.run);
    strcpy(f.path, "/tmp/judge_store_test.XXXXXX");
    if (!mkdtemp(f.path)) {
        return -1;
    }
    snprintf(path, sizeof(path), "%s/baseline", f.path);
    if (mkdir(path, 0777) != 0) {
        return -1;
    }
    for (uint32_t i = 0; i < TESTING_CASES; i++) {
        complete(&f.run.record[i]);
    }
    complete(&f.run.baseline);
    case_id(&f.run.c[0], f.id);
    case_baseline_key(&f.run.c[0], f.key);
    *state = &f;
    return judge_store_open(f.path, NULL, &f.store);
}

static int tear_down(void **state)
{
    struct folder *f = *state;
    char command[128];

    judge_store_close(f->store);
    testing_run_release(&f->run);
    snprintf(command, sizeof(command), "rm -r -- '%s'", f->path);
    return system(command); /* the test's own folder. NOLINT(cert-env33-c) */
}

static void what_is_there_is_found(void **state)
{
    struct folder *f = *state;
    struct fsdp_error error = {0};
    char name[CASE_ID_BYTES + 16];
    const struct record *r = NULL;
    const struct record *baseline = NULL;

    assert_null(judge_store_record(f->store, f->id, &error));
    assert_int_equal(error.status, FSDP_OK); /* absent is no failure */
    write_record(f, f->id, &f->run.record[0]);
    snprintf(name, sizeof(name), "baseline/%s", f->key);
    write_record(f, name, &f->run.baseline);
    r = judge_store_record(f->store, f->id, &error);
    baseline = judge_store_baseline(f->store, f->key, &error);
    assert_non_null(r);
    assert_non_null(baseline);
    assert_ptr_not_equal(r, baseline);
    assert_ptr_equal(judge_store_record(f->store, f->id, &error), r);
    assert_true(r->rank[1].loss[0] == 1);
    judge_store_next(f->store); /* small: it stays */
    assert_ptr_equal(judge_store_record(f->store, f->id, &error), r);
}

static void what_is_malformed_is_told(void **state)
{
    struct folder *f = *state;
    struct fsdp_error error = {0};
    char path[512];
    FILE *file = NULL;

    write_record(f, f->id, &f->run.record[0]);
    snprintf(path, sizeof(path), "%s/%s/rank-1.json", f->path, f->id);
    file = fopen(path, "wb");
    assert_non_null(file);
    assert_true(fputs("{", file) >= 0);
    assert_int_equal(fclose(file), 0);
    for (uint32_t i = 0; i < 2; i++) {
        memset(&error, 0, sizeof(error));
        assert_null(judge_store_record(f->store, f->id, &error));
        assert_int_equal(error.status, FSDP_ERR_FORMAT);
        assert_string_not_equal(error.message, "");
    }
}

/* A record that cannot be opened is there: to call it missing would send people
 * to look for it. And as long as no record says whose it is, none belongs to
 * another engine. */
static void what_cannot_be_opened_is_told(void **state)
{
    struct folder *f = *state;
    struct fsdp_error error = {0};
    struct judge_result r;
    char path[512];

    for (uint32_t i = 0; i < TESTING_CASES; i++) {
        snprintf(path, sizeof(path), "%s/%s", f->path, f->run.record[i].id);
        assert_int_equal(mkdir(path, 0777), 0);
        snprintf(path, sizeof(path), "%s/%s/case.json", f->path,
                 f->run.record[i].id);
        assert_int_equal(symlink("case.json", path), 0);
    }
    assert_null(judge_store_record(f->store, f->id, &error));
    assert_int_equal(error.status, FSDP_ERR_IO);
    assert_non_null(strstr(error.message, "symbolic links"));
    f->run.in.record = judge_store_record;
    f->run.in.baseline = judge_store_baseline;
    f->run.in.next = judge_store_next;
    f->run.in.record_context = f->store;
    assert_int_equal(judge(&f->run.in, &r), FSDP_OK);
    assert_int_equal(r.verdict, JUDGE_UNDECIDED);
    assert_non_null(strstr(r.cases[0].reason, "cannot be read"));
    judge_release(&r);
}

static void a_folder_is_judged(void **state)
{
    struct folder *f = *state;
    struct judge_result r;
    char name[CASE_ID_BYTES + 16];

    for (uint32_t i = 0; i < TESTING_CASES; i++) {
        write_record(f, f->run.record[i].id, &f->run.record[i]);
        case_baseline_key(&f->run.c[i], f->key);
        snprintf(name, sizeof(name), "baseline/%s", f->key);
        write_record(f, name, &f->run.baseline);
    }
    f->run.in.record = judge_store_record;
    f->run.in.baseline = judge_store_baseline;
    f->run.in.next = judge_store_next;
    f->run.in.record_context = f->store;
    assert_int_equal(judge(&f->run.in, &r), FSDP_OK);
    assert_string_equal(r.reason, "");
    assert_int_equal(r.verdict, JUDGE_CONFORMANT);
    judge_release(&r);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_there_is_found),
        TEST(what_is_malformed_is_told),
        TEST(what_cannot_be_opened_is_told),
        TEST(a_folder_is_judged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare_words_test.c - what findings say to people: names, and what a wrong
 * value is instead.
 */
#include "judge/replay/replay.h"

#include "judge/oracle/expect_testing.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* One unit of two parameters, 5 and 3 elements, over two ranks: rank 0 owns
 * [0,4) of p0, rank 1 the rest of it and p1. */
struct fixture {
    struct testing_model t;
    struct run_case c;
    struct expect e;
    struct record r;
};

static void add(struct record_rank *rank, uint32_t p, uint64_t first,
                uint64_t n)
{
    struct record_tensor *t = &rank->tensor[rank->n_tensors++];

    *t = (struct record_tensor){.stage = RECORD_INITIAL,
                                .parameter = p,
                                .first = first,
                                .n = n,
                                .data = calloc(n, sizeof(float))};
    assert_non_null(t->data);
}

static int setup(void **state)
{
    struct fixture *x = calloc(1, sizeof(*x));

    assert_non_null(x);
    testing_model(&x->t, "-0", "1:5 1:3", "F1 f1 B1 b1", "F1 f1");
    x->c = testing_case(CASE_FULL_SHARD, 2, 1);
    assert_int_equal(expect_make(&x->c, &x->t.model, &x->t.units, &x->e),
                     FSDP_OK);
    assert_int_equal(record_init(&x->r, &x->c, 2), FSDP_OK);
    for (uint32_t k = 0; k < 2; k++) {
        x->r.rank[k].present = true;
        x->r.rank[k].status = FSDP_OK;
        x->r.rank[k].tensor = calloc(4, sizeof(*x->r.rank[k].tensor));
        assert_non_null(x->r.rank[k].tensor);
    }
    add(&x->r.rank[0], 0, 0, 4);
    add(&x->r.rank[1], 0, 4, 1);
    add(&x->r.rank[1], 1, 0, 3);
    *state = x;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *x = *state;

    record_release(&x->r);
    expect_release(&x->e);
    free(x);
    return 0;
}

static bool holds(const struct fixture *x, const char *id, struct finding *f)
{
    const struct requirement *const *table = requirement_table();
    const struct requirement *q = table[requirement_index(table, id)];

    assert_non_null(q);
    return requirement_holds(q, &x->e, &x->r, f);
}

static void a_shard_of_another_size(void **state)
{
    struct fixture *x = *state;
    struct finding f = {0};

    assert_true(holds(x, "layout.chunk-rule", &f));
    x->r.rank[0].tensor[0].n = 5;
    assert_false(holds(x, "layout.chunk-rule", &f));
    assert_int_equal(f.form, FINDING_TEXT);
    assert_string_equal(f.note, "rank 0 reports [0,5) of p0, should own [0,4)");
    x->r.rank[0].tensor[0].n = 4;
    x->r.rank[1].tensor[1].parameter = 99;
    assert_false(holds(x, "layout.chunk-rule", &f));
    assert_string_equal(f.note,
                        "rank 1 reports nothing of p1, should own [0,3)");
    x->r.rank[1].tensor[1].parameter = 1;
    add(&x->r.rank[0], 1, 1, 2);
    assert_false(holds(x, "layout.chunk-rule", &f));
    assert_string_equal(f.note, "rank 0 also reports [1,3) of p1, which it "
                                "should not own");
}

static void the_first_cause_not_who_followed(void **state)
{
    struct fixture *x = *state;
    struct finding f = {0};
    struct fsdp_error *error = &x->r.rank[1].error;

    assert_true(holds(x, "run.completes", &f));
    x->r.rank[0].status = FSDP_ERR_ABORTED;
    assert_false(holds(x, "run.completes", &f));
    assert_int_equal(f.rank, 0);
    x->r.rank[1].status = FSDP_ERR_NOMEM;
    snprintf(error->where, sizeof(error->where), "post_backward");
    snprintf(error->message, sizeof(error->message), "no 4096 bytes");
    assert_false(holds(x, "run.completes", &f));
    assert_int_equal(f.rank, 1);
    assert_string_equal(f.note, "ended with -3 (out of memory) in "
                                "post_backward: no 4096 bytes");
    /* Of a case that is not claimed nobody asks. */
    x->r.rank[1].status = FSDP_ERR_UNSUPPORTED;
    assert_false(holds(x, "run.completes", &f));
    assert_string_equal(f.note,
                        "ended with -2 (unsupported, though all that this case "
                        "needs is claimed) in post_backward: no 4096 bytes");
    x->r.rank[1].status = FSDP_ERR_NOMEM;
    /* A record's text need not end. */
    memset(error->where, 'w', sizeof(error->where));
    memset(error->message, 'm', sizeof(error->message));
    assert_false(holds(x, "run.completes", &f));
    assert_int_equal(strlen(f.note), strlen("ended with -3 (out of memory) in "
                                            ": ") +
                                         sizeof(error->where) +
                                         sizeof(error->message));
}

static void factors_have_words(void **state)
{
    char words[COMPARE_WORDS_BYTES];

    (void)state;
    assert_true(compare_factor_words(4, 2, words));
    assert_string_equal(words, "got is want times 2");
    assert_true(compare_factor_words(-0.25, 1, words));
    assert_string_equal(words, "got is want divided by -4");
    assert_true(compare_factor_words((double)(1.0f / 3.0f), 1, words));
    assert_string_equal(words, "got is want divided by 3");
    assert_false(compare_factor_words(1.0000001, 1, words));
    assert_false(compare_factor_words(2.5, 1, words));
    assert_false(compare_factor_words(0, 1, words));
    assert_false(compare_factor_words(1, 0, words));
    assert_false(compare_factor_words((double)NAN, 1, words));
    assert_false(compare_factor_words((double)INFINITY, 1, words));
}

/* Two microbatches without sync in between: 3 and 5 on every rank. */
static void what_a_wrong_sum_is_instead(void **state)
{
    struct fixture *x = *state;
    struct finding f = {0};
    float a[2] = {3, 3};
    float b[2] = {5, 5};
    float got[2];
    struct replay_reduction reduction = {
        .e = &x->e, .factor = {1.0f, 1.0f}, .uses = {1, 1}};

    x->c.microbatches = 2;
    x->c.sync[0] = 0;
    x->c.sync[1] = 1;
    for (uint32_t k = 0; k < 2; k++) {
        reduction.grad[0][0][k] = a;
        reduction.grad[1][0][k] = b;
    }
    assert_true(replay_reduced(&reduction, 0) == 16.0f);
    got[0] = got[1] = 6;
    replay_hint(&reduction, got, 2, &f);
    assert_string_equal(f.note, "equals the first microbatch alone: later "
                                "ones were not added");
    got[0] = got[1] = 10;
    replay_hint(&reduction, got, 2, &f);
    assert_string_equal(f.note, "equals the last microbatch alone: earlier "
                                "ones were lost");
    got[0] = got[1] = 32;
    replay_hint(&reduction, got, 2, &f);
    assert_string_equal(f.note, "all of this part: got is want times 2");
    f.note[0] = '\0';
    got[1] = 9;
    replay_hint(&reduction, got, 2, &f);
    assert_string_equal(f.note, "");
}

static void collectives_have_names(void **state)
{
    struct fixture *x = *state;
    struct record_collective c = {.kind = FSDP_ALL_GATHER, .unit = 0};
    struct compare_wording wording = {"runs over", "replicate", NULL};
    char words[COMPARE_WORDS_BYTES];
    struct finding f;

    assert_false(finding_collective(
        &x->e, &f, finding_at("collectives", 1, -1, 2), &c, 2, &wording));
    assert_int_equal(f.form, FINDING_TEXT);
    assert_int_equal(f.unit, 0);
    assert_string_equal(f.note, "collective 3 of the step, an all-gather of "
                                "unit m1, runs over replicate, expected "
                                "unknown");
    c = (struct record_collective){.kind = FSDP_BROADCAST,
                                   .unit = FSDP_NO_UNIT};
    compare_collective_words(&x->e, &c, words);
    assert_string_equal(words, "a broadcast of no unit");
    c = (struct record_collective){.kind = 99, .unit = 7};
    compare_collective_words(&x->e, &c, words);
    assert_string_equal(words, "an unknown of unknown unit 7");
}

static void peaks_are_told_by_kind(void **state)
{
    struct record_memory m = {
        .peak = {[FSDP_PARAM_SHARD] = 2176, [FSDP_PARAM_FULL] = 4096}};
    struct finding f;
    struct finding at = finding_at("memory", -1, -1, 0);

    (void)state;
    assert_false(finding_peak(&f, at, 5, 4, "at once", &m));
    assert_int_equal(f.form, FINDING_BYTES);
    assert_string_equal(f.note, "at once; peaks alone: parameter shards 2176, "
                                "unsharded 4096, gradient shards 0, unsharded "
                                "gradients 0, states 0, staging 0 bytes");
    for (uint32_t kind = 0; kind < FSDP_N_KINDS; kind++) {
        m.peak[kind] = UINT64_MAX;
    }
    assert_false(finding_peak(&f, at, 5, 4, "at once", &m));
    assert_true(strlen(f.note) < sizeof(f.note));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TEST(a_shard_of_another_size), TEST(the_first_cause_not_who_followed),
        TEST(factors_have_words),      TEST(what_a_wrong_sum_is_instead),
        TEST(collectives_have_names),  TEST(peaks_are_told_by_kind),
#undef TEST
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}

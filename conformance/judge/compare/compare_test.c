/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare_test.c - the helpers that requirements share: that they say where a
 * difference is, and that no record, however wrong, is believed or passes.
 */
#include "judge/compare/compare.h"

#include "judge/oracle/expect_testing.h"
#include "judge/replay/replay.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Two units over three ranks: unit 0 has parameters of 5 and 2 elements (a
 * chunk of 3, two of padding), unit 1 one of 4 (a chunk of 2, rank 2 empty). */
struct fixture {
    struct testing_model t;
    struct run_case c;
    struct expect e;
    struct record r, baseline;
};

static float value_of(uint32_t stage, uint32_t step, uint32_t p, uint64_t x)
{
    return 1.0f + (float)stage + 0.25f * (float)step + 16.0f * (float)p +
           0.0625f * (float)x;
}

static void add(struct record_rank *rank, uint32_t stage, uint32_t step,
                uint32_t p, uint64_t first, uint64_t n)
{
    struct record_tensor *t =
        realloc(rank->tensor, (rank->n_tensors + 1) * sizeof(*rank->tensor));

    assert_non_null(t);
    rank->tensor = t;
    t += rank->n_tensors++;
    *t = (struct record_tensor){
        .stage = stage, .step = step, .parameter = p, .first = first, .n = n};
    t->data = calloc(n, sizeof(*t->data));
    assert_non_null(t->data);
    for (uint64_t i = 0; i < n; i++) {
        t->data[i] = value_of(stage, step, p, first + i);
    }
}

static void fill_rank(struct fixture *x, uint32_t k)
{
    struct record_rank *rank = &x->r.rank[k];
    struct expect_part *part = NULL;
    uint32_t n = 0;

    assert_int_equal(expect_parts(&x->e, k, &part, &n), FSDP_OK);
    for (uint32_t step = 0; step < 2; step++) {
        for (uint32_t i = 0; i < n; i++) {
            add(rank, RECORD_BEFORE, step, part[i].parameter, part[i].first,
                part[i].n);
        }
        for (uint32_t p = 0; p < 3; p++) {
            add(rank, RECORD_LOCAL_GRADIENT, step, p, 0,
                fsdp_numel(&x->t.model, p));
        }
    }
    free(part);
    rank->present = true;
    rank->n_losses = 4;
    rank->loss = calloc(4, sizeof(*rank->loss));
    assert_non_null(rank->loss);
    for (uint32_t i = 0; i < 4; i++) {
        rank->loss[i] = 8.0f - (float)i + (float)k;
    }
    record_sort(rank);
}

static int setup(void **state)
{
    struct fixture *x = calloc(1, sizeof(*x));

    assert_non_null(x);
    testing_model(&x->t, "-01", "1:5 1:2 2:4", "F1 f1 F2 f2 B2 b2 B1 b1",
                  "F1 f1 F2 f2");
    x->c = testing_case(CASE_FULL_SHARD, 3, 1);
    assert_int_equal(expect_make(&x->c, &x->t.model, &x->t.units, &x->e),
                     FSDP_OK);
    assert_int_equal(record_init(&x->r, &x->c, 3), FSDP_OK);
    assert_int_equal(record_init(&x->baseline, &x->c, 3), FSDP_OK);
    for (uint32_t k = 0; k < 3; k++) {
        fill_rank(x, k);
        x->baseline.rank[k].present = true;
    }
    for (uint32_t p = 0; p < 3; p++) {
        for (uint32_t step = 0; step < 2; step++) {
            add(&x->baseline.rank[0], RECORD_BEFORE, step, p, 0,
                fsdp_numel(&x->t.model, p));
        }
    }
    record_sort(&x->baseline.rank[0]);
    x->e.baseline = &x->baseline;
    *state = x;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *x = *state;

    record_release(&x->r);
    record_release(&x->baseline);
    expect_release(&x->e);
    free(x);
    return 0;
}

static bool check_before(const struct expect *e, const struct record *r,
                         const struct compare_part *part, struct finding *f)
{
    return compare_equal(e, part, RECORD_BEFORE,
                         compare_values(r, RECORD_BEFORE, part),
                         compare_baseline(e, RECORD_BEFORE, part), f);
}

static void parts_of_all_ranks_are_the_whole(void **state)
{
    struct fixture *x = *state;
    struct finding f;

    assert_true(compare_parts(&x->e, &x->r, 0, 2, check_before, &f));
    assert_true(compare_starts_alike(&x->e, &x->r, 1));
}

/* Rank 2 owns flat 6 of unit 0 alone: element 1 of parameter 1. */
static void a_difference_is_placed(void **state)
{
    struct fixture *x = *state;
    struct finding f;

    assert_true(compare_spoil_stage(&x->r, RECORD_BEFORE, 1));
    assert_false(compare_parts(&x->e, &x->r, 0, 2, check_before, &f));
    assert_int_equal(f.form, FINDING_BITS);
    assert_string_equal(f.stage, "before");
    assert_int_equal(f.rank, 2);
    assert_int_equal(f.step, 1);
    assert_int_equal(f.unit, 0);
    assert_int_equal(f.parameter, 1);
    assert_int_equal(f.element, 1);
    assert_int_equal(f.flat, 6);
    assert_int_equal(f.shard, 2);
    assert_int_equal(f.local, 0);
    assert_int_equal(f.got ^ f.want, 1);
    assert_true(compare_starts_alike(&x->e, &x->r, 0));
    assert_false(compare_starts_alike(&x->e, &x->r, 1));
}

static void what_is_not_recorded_fails(void **state)
{
    struct fixture *x = *state;
    uint32_t n_tensors = x->r.rank[1].n_tensors;
    struct finding f;

    x->r.rank[1].n_tensors = 0;
    assert_false(compare_parts(&x->e, &x->r, 0, 1, check_before, &f));
    x->r.rank[1].n_tensors = n_tensors;
    assert_int_equal(f.rank, 1);
    assert_int_equal(f.form, FINDING_COUNT);
    x->r.rank[1].present = false;
    assert_false(compare_parts(&x->e, &x->r, 0, 1, check_before, &f));
    x->r.n_ranks = 0;
    assert_false(compare_parts(&x->e, &x->r, 0, 1, check_before, &f));
    assert_int_equal(f.rank, 0);
    x->r.n_ranks = 3; /* for the release */
}

static void a_part_of_another_size_is_not_taken(void **state)
{
    struct fixture *x = *state;
    struct finding f;

    compare_tensor_to_spoil(&x->r, RECORD_BEFORE, 0)->n = 0;
    assert_false(compare_parts(&x->e, &x->r, 0, 1, check_before, &f));
    assert_string_equal(f.note, "not recorded: elements from here on");
}

static void a_missing_reference_is_no_failure_and_no_pass(void **state)
{
    struct fixture *x = *state;
    struct finding f;

    x->e.baseline = NULL;
    assert_false(compare_parts(&x->e, &x->r, 0, 1, check_before, &f));
    assert_int_equal(f.form, FINDING_MISSING);
    assert_false(compare_curves(&x->e, &x->r, NULL, 1, &f));
    assert_int_equal(f.form, FINDING_MISSING);
}

static void nan_equals_nothing(void **state)
{
    const struct fixture *x = *state;
    struct compare_part part = {.n = 1};
    const float nan = NAN;
    const float one = 1.0f;
    const float zero = 0.0f;
    const float minus = -0.0f;
    const float other = -NAN;
    struct finding f;

    assert_false(compare_equal(&x->e, &part, RECORD_AFTER, &nan, &nan, &f));
    assert_false(compare_equal(&x->e, &part, RECORD_AFTER, &nan, &one, &f));
    assert_false(compare_equal(&x->e, &part, RECORD_AFTER, &zero, &minus, &f));
    assert_true(compare_equal(&x->e, &part, RECORD_AFTER, &minus, &minus, &f));
    /* But where a script's edits have made it: then any NaN will do. */
    part.any_nan = true;
    assert_true(compare_equal(&x->e, &part, RECORD_AFTER, &other, &nan, &f));
    assert_false(compare_equal(&x->e, &part, RECORD_AFTER, &nan, &one, &f));
    assert_false(compare_equal(&x->e, &part, RECORD_AFTER, &one, &nan, &f));
    assert_false(compare_equal(&x->e, &part, RECORD_AFTER, &zero, &minus, &f));
}

static void curves_are_folded(void **state)
{
    struct fixture *x = *state;
    float loss = 0.0f;
    struct finding f;

    /* (8 + 9 + 10) * (1 / 3) */
    assert_true(compare_loss(&x->e, &x->r, 0, &loss));
    assert_true(loss == 27.0f * (1.0f / 3.0f));
    assert_false(compare_loss(&x->e, &x->r, 4, &loss));
    assert_true(compare_curves(&x->e, &x->r, &x->r, 4, &f));
    x->r.rank[2].n_losses = 3;
    assert_false(compare_curves(&x->e, &x->r, &x->r, 4, &f));
    assert_int_equal(f.step, 3);
}

static bool any_sequence(const struct expect *e,
                         const struct record_sequence *sequence,
                         struct finding at, struct finding *f)
{
    (void)e;
    (void)sequence;
    (void)at;
    (void)f;
    return true;
}

static void indices_of_sequences_are_checked(void **state)
{
    struct fixture *x = *state;
    struct finding f;

    assert_false(compare_steps(&x->e, &x->r, any_sequence, &f));
    for (uint32_t k = 0; k < 3; k++) {
        struct record_rank *rank = &x->r.rank[k];

        rank->n_steps = 4;
        rank->step_sequence = calloc(4, sizeof(*rank->step_sequence));
        rank->n_sequences = 1;
        rank->sequence = calloc(1, sizeof(*rank->sequence));
        assert_true(rank->step_sequence && rank->sequence);
    }
    assert_true(compare_steps(&x->e, &x->r, any_sequence, &f));
    assert_null(compare_sequence_to_spoil(&x->r));
    x->r.rank[2].step_sequence[3] = 1;
    assert_false(compare_steps(&x->e, &x->r, any_sequence, &f));
    assert_int_equal(f.rank, 2);
    assert_int_equal(f.step, 3);
    x->r.rank[2].step_sequence[3] = 0;
    x->r.rank[1].sequence[0].n = 7; /* of an array that is not there */
    assert_false(compare_steps(&x->e, &x->r, any_sequence, &f));
    x->r.rank[1].sequence[0].n = 0;
}

/* One rank's steps, all with these collectives and those behind them. */
static void fill_sequence(struct record_rank *rank, uint32_t steps,
                          const struct record_sequence *step,
                          const struct record_sequence *ahead)
{
    struct record_sequence *s = calloc(1, sizeof(*s));

    rank->n_steps = steps;
    rank->step_sequence = calloc(steps, sizeof(*rank->step_sequence));
    rank->sequence = s;
    rank->n_sequences = 1;
    assert_true(rank->step_sequence && s);
    s->n = step->n + ahead->n;
    s->c = calloc(s->n, sizeof(*s->c));
    assert_non_null(s->c);
    memcpy(s->c, step->c, step->n * sizeof(*s->c));
    memcpy(s->c + step->n, ahead->c, ahead->n * sizeof(*s->c));
}

/* An engine that has run ahead as far as it may has more than it needs. */
static void a_count_is_spoiled_beyond_what_is_ahead(void **state)
{
    static const uint32_t kinds[] = {FSDP_ALL_GATHER, FSDP_REDUCE_SCATTER,
                                     FSDP_ALL_REDUCE};
    struct fixture *x = *state;
    struct expect e;

    x->c.scenario = CASE_CANCEL;
    x->c.prefetch_backward = 1;
    assert_int_equal(expect_make(&x->c, &x->t.model, &x->t.units, &e), FSDP_OK);
    assert_true(e.ahead.n > 0);
    for (uint32_t k = 0; k < 3; k++) {
        fill_sequence(&x->r.rank[k], x->c.steps, &e.step, &e.ahead);
    }
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        struct record_sequence *s = x->r.rank[0].sequence;
        struct finding f;

        assert_true(compare_kind_count(&e, &x->r, kinds[i], &f));
        assert_true(compare_spoil_kind_count(&e, &x->r, kinds[i]));
        assert_false(compare_kind_count(&e, &x->r, kinds[i], &f));
        assert_int_equal(f.rank, 0);
        memcpy(s->c, x->r.rank[1].sequence->c, s->n * sizeof(*s->c));
    }
    expect_release(&e);
}

/* The same wrong call may be made twice; both answers count. */
static void every_answer_of_a_name_counts(void **state)
{
    static const struct compare_answer want[] = {
        {.name = "begin-twice", .want = FSDP_ERR_INVALID}};
    struct fixture *x = *state;
    struct finding f;

    assert_false(compare_answers(&x->e, &x->r, want, 1, &f));
    for (uint32_t k = 0; k < 3; k++) {
        struct record_rank *rank = &x->r.rank[k];

        rank->answer = calloc(2, sizeof(*rank->answer));
        assert_non_null(rank->answer);
        rank->n_answers = 2;
        for (uint32_t i = 0; i < 2; i++) {
            memcpy(rank->answer[i].name, "begin-twice", 12);
            rank->answer[i].status = FSDP_ERR_INVALID;
        }
    }
    assert_true(compare_answers(&x->e, &x->r, want, 1, &f));
    x->r.rank[1].answer[1].status = FSDP_OK;
    assert_false(compare_answers(&x->e, &x->r, want, 1, &f));
    assert_int_equal(f.rank, 1);
}

/* A rank that ended early is no failure of what it was not asked; a wrong
 * answer of another rank still is. */
static void what_was_never_asked_is_not_wrong(void **state)
{
    static const struct compare_answer want[] = {
        {.name = "begin-twice", .want = FSDP_ERR_INVALID}};
    struct fixture *x = *state;
    struct record_rank *last = &x->r.rank[2];
    struct finding f;

    for (uint32_t k = 0; k < 3; k++) {
        x->r.rank[k].status = FSDP_ERR_ABORTED;
    }
    assert_false(compare_answers(&x->e, &x->r, want, 1, &f));
    assert_int_equal(f.form, FINDING_ENDED);
    x->r.rank[1].status = FSDP_OK; /* it was asked, and says nothing */
    assert_false(compare_answers(&x->e, &x->r, want, 1, &f));
    assert_int_equal(f.form, FINDING_TEXT);
    assert_int_equal(f.rank, 1);
    x->r.rank[1].status = FSDP_ERR_ABORTED;
    last->answer = calloc(1, sizeof(*last->answer));
    assert_non_null(last->answer);
    last->n_answers = 1;
    memcpy(last->answer[0].name, "begin-twice", 12);
    assert_false(compare_answers(&x->e, &x->r, want, 1, &f));
    assert_int_equal(f.form, FINDING_TEXT);
    assert_int_equal(f.rank, 2);
}

static void reductions_are_replayed(void **state)
{
    struct fixture *x = *state;
    struct compare_part part = {.rank = 1, .parameter = 0, .first = 3, .n = 2};
    struct replay_reduction reduction;
    struct finding f;
    float g = value_of(RECORD_LOCAL_GRADIENT, 0, 0, 4);

    assert_true(replay_reduction_find(&x->e, &x->r, &part, &reduction, &f));
    assert_int_equal(reduction.first, 3);
    assert_true(replay_reduced(&reduction, 1) == ((g + g) + g) * (1.0f / 3.0f));
    x->r.rank[2].present = false;
    assert_false(replay_reduction_find(&x->e, &x->r, &part, &reduction, &f));
}

/* Powers of two, so that each step is exact and can be seen. */
static void optimizers_are_those_of_op_h(void **state)
{
    struct replay_optimizer o = {.kind = FSDP_OPTIMIZER_SGD, .lr = 0.5f};
    struct replay_element x = {.weight = 4.0f, .state = {2.0f, 0.0f}};

    (void)state;
    assert_true(replay_step(&o, x, 1.0f).weight == 3.5f);
    o.weight_decay = 0.25f; /* d = 1 + 1 */
    assert_true(replay_step(&o, x, 1.0f).weight == 3.0f);
    o.kind = FSDP_OPTIMIZER_MOMENTUM;
    o.momentum = 0.5f; /* v = 1 + 2 */
    assert_true(replay_step(&o, x, 1.0f).state[0] == 3.0f);
    assert_true(replay_step(&o, x, 1.0f).weight == 2.5f);
    o = (struct replay_optimizer){.kind = FSDP_OPTIMIZER_ADAMW,
                                  .lr = 0.5f,
                                  .weight_decay = 0.25f,
                                  .beta1 = 0.5f,
                                  .beta2 = 0.75f,
                                  .p1 = 0.5f,
                                  .p2 = 0.75f};
    x = replay_step(&o, (struct replay_element){.weight = 4.0f}, 2.0f);
    assert_true(x.state[0] == 1.0f);
    assert_true(x.state[1] == 1.0f);
    /* 4 - 0.125 * 4, less 1 * 1 / (1 / 0.5) */
    assert_true(x.weight == 3.0f);
}

/* What a sum of zeros begins with is an arithmetic's own. */
static void a_zero_may_have_either_sign_where_said(void **state)
{
    struct fixture *x = *state;
    struct compare_part part = {.n = 2};
    const float want[2] = {0.0f, 1.0f};
    float got[2] = {-0.0f, 1.0f};
    struct finding f;

    assert_false(compare_equal(&x->e, &part, RECORD_REDUCED, got, want, &f));
    part.any_zero = true;
    assert_true(compare_equal(&x->e, &part, RECORD_REDUCED, got, want, &f));
    got[0] = 1e-45f;
    assert_false(compare_equal(&x->e, &part, RECORD_REDUCED, got, want, &f));
    got[0] = 0.0f;
    got[1] = -1.0f;
    assert_false(compare_equal(&x->e, &part, RECORD_REDUCED, got, want, &f));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TEST(a_zero_may_have_either_sign_where_said),
        TEST(parts_of_all_ranks_are_the_whole),
        TEST(a_difference_is_placed),
        TEST(what_is_not_recorded_fails),
        TEST(a_part_of_another_size_is_not_taken),
        TEST(a_missing_reference_is_no_failure_and_no_pass),
        TEST(nan_equals_nothing),
        TEST(curves_are_folded),
        TEST(indices_of_sequences_are_checked),
        TEST(a_count_is_spoiled_beyond_what_is_ahead),
        TEST(every_answer_of_a_name_counts),
        TEST(what_was_never_asked_is_not_wrong),
        TEST(reductions_are_replayed),
        TEST(optimizers_are_those_of_op_h),
#undef TEST
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}

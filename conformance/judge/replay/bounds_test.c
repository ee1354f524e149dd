/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bounds_test.c - what is asked of an arithmetic of another kind: the bounds
 * themselves at their edges, and that no record passes that lacks something,
 * is not a number, or evaluates elsewhere.
 */
#include "judge/replay/bounds.h"

#include "judge/oracle/expect_testing.h"
#include "judge/replay/replay.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "testing/unit_testing.h"

enum {
    STEPS = 3,
    RANKS = 2
};

static float *floats(uint32_t n, float x)
{
    float *p = calloc(n, sizeof(*p));

    assert_non_null(p);
    for (uint32_t i = 0; i < n; i++) {
        p[i] = x;
    }
    return p;
}

static void fill(struct record *r)
{
    for (uint32_t k = 0; k < RANKS; k++) {
        r->rank[k].present = true;
        r->rank[k].n_losses = STEPS;
        r->rank[k].loss = floats(STEPS, 2.0f);
        r->rank[k].n_other_losses = STEPS;
        r->rank[k].other_loss = floats(STEPS, 3.0f);
    }
}

static int open_fixture(void **state, const char *eval)
{
    struct fixture *x = fixture_open(state);

    testing_model(&x->t, "-01", "1:5 2:4", "F1 f1 F2 f2 B2 b2 B1 b1", eval);
    x->c = testing_case(CASE_FULL_SHARD, RANKS, 1);
    x->c.scenario = CASE_EVAL;
    x->c.steps = STEPS;
    fixture_make(x);
    fill(&x->r);
    fill(&x->baseline);
    x->e.baseline = &x->baseline;
    x->e.profile = EXPECT_OWN;
    return 0;
}

/* An evaluation that calls one module of the two. */
static int setup(void **state)
{
    return open_fixture(state, "F1 f1");
}

static int setup_alike(void **state)
{
    return open_fixture(state, "F1 f1 F2 f2");
}

/* What an error of exactly the bound is, for one value `want`. */
static float at_the_bound(const struct fixture *x, float want, uint32_t steps)
{
    return want + (float)(bounds_roundings(&x->e) * 0x1p-23 *
                          (1.0 + (double)steps) * (double)want);
}

static bool eval_holds(const struct fixture *x, struct finding *f)
{
    *f = (struct finding){0};
    return fixture_holds(x, "eval.equals-training-forward", f);
}

static void another_evaluation_has_a_bound(void **state)
{
    struct fixture *x = *state;
    struct finding f;

    /* Samples, a gradient a rank, and parameters of 5 and 4 elements. */
    assert_true(bounds_roundings(&x->e) == 256.0 + RANKS + 5.0 + 4.0);
    assert_true(eval_holds(x, &f));
    assert_true(f.ratio == 0.0);
    /* The evaluation after step t has made t + 1 steps. */
    for (uint32_t t = 0; t < STEPS; t++) {
        float *got = &x->r.rank[1].other_loss[t];

        *got = at_the_bound(x, 3.0f, t + 1) - 2.0f * 0x1p-22f;
        assert_true(eval_holds(x, &f));
        assert_true(f.ratio > 0.5 && f.ratio <= 1.0);
        *got = at_the_bound(x, 3.0f, t + 1) + 2.0f * 0x1p-22f;
        assert_false(eval_holds(x, &f));
        assert_true(f.ratio > 1.0 && f.rank == 1 && f.step == t);
        *got = NAN;
        assert_false(eval_holds(x, &f));
        *got = 3.0f;
    }
}

static void exact_data_have_none(void **state)
{
    struct fixture *x = *state;
    struct finding f;

    x->c.data = WORKLOAD_EXACT;
    assert_true(eval_holds(x, &f));
    x->r.rank[0].other_loss[1] = nextafterf(3.0f, 4.0f);
    assert_false(eval_holds(x, &f));
    assert_int_equal(f.form, FINDING_BITS);
}

static void the_suites_own_arithmetic_has_none(void **state)
{
    struct fixture *x = *state;
    struct finding f;

    x->e.profile = EXPECT_F32_FMA;
    x->r.rank[0].other_loss[1] = nextafterf(3.0f, 4.0f);
    assert_false(eval_holds(x, &f));
    assert_int_equal(f.form, FINDING_BITS);
}

static void evaluations_that_are_missing_are_no_pass(void **state)
{
    struct fixture *x = *state;
    struct finding f;

    x->baseline.rank[1].n_other_losses = 1;
    assert_false(eval_holds(x, &f));
    assert_int_equal(f.form, FINDING_MISSING);
    x->baseline.rank[1].n_other_losses = STEPS;
    x->e.baseline = NULL;
    assert_false(eval_holds(x, &f));
    assert_int_equal(f.form, FINDING_MISSING);
    x->e.baseline = &x->baseline;
    x->r.rank[0].n_other_losses = STEPS - 1;
    assert_false(eval_holds(x, &f));
    assert_int_equal(f.form, FINDING_COUNT);
}

/* Then the next step's forward says what must come out, to the bit. */
static void an_evaluation_like_training_has_no_bound(void **state)
{
    struct fixture *x = *state;
    struct finding f;

    assert_false(eval_holds(x, &f)); /* 3 and 2 */
    for (uint32_t k = 0; k < RANKS; k++) {
        for (uint32_t t = 0; t < STEPS; t++) {
            x->r.rank[k].other_loss[t] = 2.0f;
        }
    }
    assert_true(eval_holds(x, &f));
    x->r.rank[0].other_loss[STEPS - 1] = 77.0f; /* nothing follows it */
    assert_true(eval_holds(x, &f));
    x->r.rank[0].other_loss[0] = nextafterf(2.0f, 3.0f);
    assert_false(eval_holds(x, &f));
    assert_int_equal(f.form, FINDING_BITS);
    x->r.rank[0].other_loss[0] = 2.0f;
    x->r.rank[1].n_losses = 2;
    assert_false(eval_holds(x, &f));
}

static void a_curve_that_is_cut_is_no_pass(void **state)
{
    struct fixture *x = *state;
    struct finding f = {0};

    assert_true(fixture_holds(x, "num.curve-bound", &f));
    x->r.rank[1].loss[2] = at_the_bound(x, 2.0f, 2) + 2.0f * 0x1p-22f;
    assert_false(fixture_holds(x, "num.curve-bound", &f));
    assert_true(f.ratio > 1.0 && f.step == 2 && f.rank == 1);
    x->r.rank[1].loss[2] = NAN;
    assert_false(fixture_holds(x, "num.curve-bound", &f));
    x->r.rank[1].loss[2] = 2.0f;
    x->r.rank[1].n_losses = 2;
    assert_false(fixture_holds(x, "num.curve-bound", &f));
    x->r.rank[1].n_losses = STEPS;
    x->baseline.rank[0].n_losses = 0;
    assert_false(fixture_holds(x, "num.curve-bound", &f));
    x->e.baseline = NULL;
    assert_false(fixture_holds(x, "num.curve-bound", &f));
}

/* No tensors at all: nothing to compare is a failure, and nothing to spoil. */
static void tensors_that_are_missing_are_no_pass(void **state)
{
    struct fixture *x = *state;
    const struct compare_part part = {.parameter = 0, .n = 3, .unit = 0};
    const float three[3] = {1.0f, 2.0f, 3.0f};
    struct finding f = {0};

    x->c.recorded_steps = 1;
    assert_false(fixture_holds(x, "grad.bound", &f));
    assert_false(fixture_holds(x, "step.bound", &f));
    assert_false(bounds_spoil(&x->r, RECORD_AFTER, 0));
    assert_false(bounds_start_alike(&x->e, &x->r, 0));
    assert_false(bounds_part(&x->e, &part, RECORD_FINAL, NULL, three, 0, &f));
    assert_false(bounds_part(&x->e, &part, RECORD_FINAL, three, NULL, 0, &f));
    assert_int_equal(f.form, FINDING_MISSING);
    assert_true(bounds_part(&x->e, &part, RECORD_FINAL, three, three, 0, &f));
}

/* As of a random graph, in a microbatch that leaves some of them alone. */
static void what_has_no_gradient_is_not_asked_for(void **state)
{
    struct fixture *x = *state;
    struct finding f = {0};

    x->c.recorded_steps = 1;
    for (uint32_t p = 0; p < x->e.model->n_parameters; p++) {
        assert_false(fixture_holds(x, "grad.bound", &f));
        x->e.has_gradient[p] = 0;
    }
    assert_true(fixture_holds(x, "grad.bound", &f));
}

static void a_bound_of_nothing_is_zero(void **state)
{
    struct fixture *x = *state;
    const float zero[2] = {0.0f, -0.0f};
    const float tiny[2] = {0.0f, 0x1p-149f};
    const float nan[2] = {0.0f, NAN};
    const float infinite[2] = {0.0f, INFINITY};
    struct finding f = {0};

    assert_true(bounds_hold(&x->e, zero, zero, 2, 0, f, &f));
    assert_false(bounds_hold(&x->e, tiny, zero, 2, 9, f, &f));
    assert_false(bounds_hold(&x->e, nan, nan, 2, 9, f, &f));
    assert_false(bounds_hold(&x->e, infinite, infinite, 2, 9, f, &f));
    assert_false(bounds_hold(&x->e, zero, nan, 2, 9, f, &f));
    assert_true(bounds_hold(&x->e, zero, zero, 0, 0, f, &f));
}

/* Two units of one parameter each: of the first all is bf16, the second has
 * float16 parameters, reduced in float32. */
static void each_rounding_to_16_bits_has_its_eps(void **state)
{
    struct fixture *x = *state;
    const double float32 = bounds_relative(&x->e, 0);

    x->c.precision = CASE_UNITS;
    assert_true(bounds_narrow(&x->e) == 0.0);
    assert_true(bounds_relative(&x->e, 3) == 4.0 * float32);
    x->e.unit[0].dtype = (struct expect_dtypes){
        FSDP_DTYPE_BF16, FSDP_DTYPE_BF16, FSDP_DTYPE_BF16,
        FSDP_DTYPE_BF16, FSDP_DTYPE_BF16, FSDP_DTYPE_NONE};
    x->e.unit[1].dtype =
        (struct expect_dtypes){FSDP_DTYPE_F16, FSDP_DTYPE_F16, FSDP_DTYPE_F32,
                               FSDP_DTYPE_F32, FSDP_DTYPE_F32, FSDP_DTYPE_NONE};
    assert_true(bounds_narrow(&x->e) ==
                (2.0 + 1.0 + x->c.microbatches + 2.0 + RANKS) * 0x1p-8 +
                    2.0 * 0x1p-11);
    assert_true(bounds_relative(&x->e, 0) == float32 + bounds_narrow(&x->e));
    x->c.precision = CASE_F32;
    assert_true(bounds_relative(&x->e, 0) == float32);
}

static void add_of(struct record *r, uint32_t k, uint32_t stage,
                   uint32_t parameter, uint64_t n, float value)
{
    struct record_rank *rank = &r->rank[k];
    struct record_tensor *t =
        realloc(rank->tensor, (rank->n_tensors + 1) * sizeof(*t));

    assert_non_null(t);
    rank->tensor = t;
    t[rank->n_tensors++] =
        (struct record_tensor){.stage = stage,
                               .parameter = parameter,
                               .n = n,
                               .data = floats((uint32_t)n, value)};
    record_sort(rank);
}

static void add(struct record *r, uint32_t stage, uint32_t parameter,
                uint64_t n, float value)
{
    add_of(r, 0, stage, parameter, n, value);
}

/* Rank 0's samples cancel to 2^-10 of what rank 1's come to: what was added up
 * is rounded as rank 1's is. A weight of that size has no such excuse. */
static void a_gradient_that_cancels_is_measured_by_other_ranks(void **state)
{
    struct fixture *x = *state;
    const struct compare_part part = {.parameter = 0, .n = 1, .unit = 0};
    const float want = 0x1p-10f;
    const float near = want + at_the_bound(x, 1.0f, 0) - 1.0f;
    const float far = want + 1.5f * (at_the_bound(x, 1.0f, 0) - 1.0f);
    struct finding f = {0};

    assert_false(
        bounds_part(&x->e, &part, RECORD_LOCAL_GRADIENT, &near, &want, 0, &f));
    add_of(&x->baseline, 1, RECORD_LOCAL_GRADIENT, 0, fsdp_numel(x->e.model, 0),
           1.0f);
    x->c.microbatches = 2; /* also in another microbatch */
    x->baseline.rank[1].tensor[0].microbatch = 1;
    assert_true(
        bounds_part(&x->e, &part, RECORD_LOCAL_GRADIENT, &near, &want, 0, &f));
    assert_false(
        bounds_part(&x->e, &part, RECORD_LOCAL_GRADIENT, &far, &want, 0, &f));
    assert_true(f.ratio > 1.0);
    assert_false(bounds_part(&x->e, &part, RECORD_FINAL, &near, &want, 0, &f));
}

/* One element through AdamW whose gradient is 0 and was 0 ever since. */
static void an_optimizer_at_rest_has_no_slack(void **state)
{
    struct fixture *x = *state;
    const struct compare_part part = {.parameter = 0, .n = 3, .unit = 0};
    struct finding f = {0};

    x->c.optimizer = FSDP_OPTIMIZER_ADAMW;
    x->e.options.optimizer = FSDP_OPTIMIZER_ADAMW;
    add(&x->r, RECORD_BEFORE, 0, 3, 1.0f);
    add(&x->r, RECORD_REDUCED, 0, 3, 0.0f);
    add(&x->r, RECORD_AFTER, 0, 3, 1.0f);
    add(&x->r, RECORD_STATE0, 0, 3, 0.0f);
    assert_false(replay_bound_step(&x->e, &x->r, &part, &f)); /* a state */
    add(&x->r, RECORD_STATE1, 0, 3, 0.0f);
    assert_true(replay_bound_step(&x->e, &x->r, &part, &f));
    /* A state has no right to be anything but 0, a weight to 4 u of itself. */
    for (uint32_t i = 0; i < x->r.rank[0].n_tensors; i++) {
        struct record_tensor *t = &x->r.rank[0].tensor[i];

        if (t->stage == RECORD_STATE1) {
            t->data[2] = 0x1p-149f;
            assert_false(replay_bound_step(&x->e, &x->r, &part, &f));
            t->data[2] = 0.0f;
        } else if (t->stage == RECORD_AFTER) {
            t->data[1] = 1.0f + 0x1p-22f; /* 4 u */
            assert_true(replay_bound_step(&x->e, &x->r, &part, &f));
            t->data[1] = 1.0f + 0x1.8p-22f;
            assert_false(replay_bound_step(&x->e, &x->r, &part, &f));
            assert_true(f.element == 1 && f.ratio > 1.0);
            t->data[1] = 1.0f;
        }
    }
    /* A unit that has no backward is not stepped: not a bit. */
    x->e.stepped[part.parameter] = false;
    assert_true(replay_bound_step(&x->e, &x->r, &part, &f));
    for (uint32_t i = 0; i < x->r.rank[0].n_tensors; i++) {
        if (x->r.rank[0].tensor[i].stage == RECORD_AFTER) {
            x->r.rank[0].tensor[i].data[0] = 1.0f + 0x1p-23f;
        }
    }
    assert_false(replay_bound_step(&x->e, &x->r, &part, &f));
}

/* As of units that are frozen in part, whose gradients come in one piece. */
static void what_is_not_compared_is_not_spoiled(void **state)
{
    static const char *const ids[] = {"grad.finite", "grad.bound"};
    const struct requirement *const *table = requirement_table();
    struct fixture *x = *state;

    add_of(&x->r, 1, RECORD_LOCAL_GRADIENT, 0, fsdp_numel(x->e.model, 0), 1.0f);
    add_of(&x->r, 1, RECORD_LOCAL_GRADIENT, 1, fsdp_numel(x->e.model, 1), 1.0f);
    x->e.has_gradient[0] = 0;
    for (uint32_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        const struct requirement *q = table[requirement_index(table, ids[i])];
        const struct record_tensor *t = x->r.rank[1].tensor;

        assert_true(requirement_spoil(q, &x->e, &x->r));
        assert_true(t[0].data[0] == 1.0f);
        assert_false(t[1].data[0] == 1.0f);
        x->r.rank[1].tensor[1].data[0] = 1.0f;
        x->r.rank[1].tensor[1].microbatch = 8; /* that there is not */
        assert_false(requirement_spoil(q, &x->e, &x->r));
        x->r.rank[1].tensor[1].microbatch = 0;
    }
}

/* By which groups.* tell whose numbers a step has. */
static void a_step_is_near_its_own_numbers_alone(void **state)
{
    const struct replay_optimizer own = {
        .kind = FSDP_OPTIMIZER_MOMENTUM, .lr = 0.5f, .momentum = 0.75f};
    const struct replay_element x = {.weight = 1.0f, .state = {0.25f, 0.0f}};
    struct replay_element got = replay_step(&own, x, 0.125f);
    struct replay_optimizer other = own;

    (void)state;
    other.momentum = 0.5f;
    assert_true(replay_bound_near(&own, 1, &x, 0.125f, &got));
    assert_false(replay_bound_near(&other, 1, &x, 0.125f, &got));
    got.weight = nextafterf(got.weight, 2.0f);
    assert_true(replay_bound_near(&own, 1, &x, 0.125f, &got));
    got.state[0] *= 1.0f + 0x1p-16f;
    assert_false(replay_bound_near(&own, 1, &x, 0.125f, &got));
    got = (struct replay_element){.weight = NAN};
    assert_false(replay_bound_near(&own, 1, &x, 0.125f, &got));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) FIXTURE_TEST(name, setup)
        TEST(another_evaluation_has_a_bound),
        TEST(exact_data_have_none),
        TEST(the_suites_own_arithmetic_has_none),
        TEST(evaluations_that_are_missing_are_no_pass),
        FIXTURE_TEST(an_evaluation_like_training_has_no_bound, setup_alike),
        TEST(a_curve_that_is_cut_is_no_pass),
        TEST(tensors_that_are_missing_are_no_pass),
        TEST(what_has_no_gradient_is_not_asked_for),
        TEST(each_rounding_to_16_bits_has_its_eps),
        TEST(a_bound_of_nothing_is_zero),
        TEST(a_gradient_that_cancels_is_measured_by_other_ranks),
        TEST(an_optimizer_at_rest_has_no_slack),
        TEST(what_is_not_compared_is_not_spoiled),
        TEST(a_step_is_near_its_own_numbers_alone),
#undef TEST
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}

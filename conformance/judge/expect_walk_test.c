/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expect_walk_test.c - the oracle's collectives and peaks against numbers
 * that were worked out by hand from the rules of the cycle.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "judge/expect_testing.h"

/* What a case must come to; peaks in elements. */
struct wanted {
    const char *step, *end;
    uint64_t resting, parameters, full, grads, staging, engine;
};

static void check(const struct testing_model *t, const struct run_case *c,
                  const struct wanted *want)
{
    struct expect e;
    char text[TESTING_TEXT];

    assert_int_equal(expect_make(c, &t->model, &t->units, &e), FSDP_OK);
    assert_string_equal(testing_sequence(&e, &e.step, text), want->step);
    assert_string_equal(testing_sequence(&e, &e.end, text),
                        want->end != NULL ? want->end : "");
    assert_int_equal(e.resting, want->resting);
    assert_int_equal(e.rest.live[FSDP_PARAM_SHARD], 4 * want->resting);
    assert_int_equal(e.peak_parameters, 4 * want->parameters);
    assert_int_equal(e.peak_full, 4 * want->full);
    assert_int_equal(e.peak_grads, 4 * want->grads);
    assert_int_equal(e.peak[FSDP_STAGING], 4 * want->staging);
    assert_int_equal(e.peak_engine, 4 * want->engine);
    expect_release(&e);
}

#define MLP_FORWARD "A0 A1 A2 A3"
#define MLP_STEP    MLP_FORWARD " A3 R3 A2 R2 A1 R1 A0 R0"

static const struct wanted mlp = {.step = MLP_STEP,
                                  .resting = 544,
                                  .parameters = 544 + 1024,
                                  .full = 1024,
                                  .grads = 1024,
                                  .engine = 544 + 1024 + 1024 + 32 + 128};

static void the_seed_model(void **state)
{
    struct testing_model t;
    struct run_case c = testing_case(CASE_FULL_SHARD, 4, 1);
    struct expect e;
    uint32_t kinds[FSDP_N_COLLECTIVES] = {0};

    (void)state;
    testing_mlp(&t);
    check(&t, &c, &mlp);
    assert_int_equal(expect_make(&c, &t.model, &t.units, &e), FSDP_OK);
    assert_int_equal(e.total, 2176);
    assert_int_equal(e.largest, 1024);
    for (uint32_t i = 0; i < e.step.n; i++) {
        kinds[e.step.c[i].kind]++;
    }
    assert_int_equal(kinds[FSDP_ALL_GATHER], 8);
    assert_int_equal(kinds[FSDP_REDUCE_SCATTER], 4);
    assert_int_equal(e.rest.live[FSDP_OPTIM], 0);
    expect_release(&e);
}

static void optimizers_rest_beside_their_shards(void **state)
{
    struct testing_model t;
    struct run_case c = testing_case(CASE_FULL_SHARD, 4, 1);
    struct expect e;

    (void)state;
    testing_mlp(&t);
    c.optimizer = FSDP_OPTIMIZER_MOMENTUM;
    assert_int_equal(expect_make(&c, &t.model, &t.units, &e), FSDP_OK);
    assert_int_equal(e.rest.live[FSDP_OPTIM], 4 * 544);
    assert_int_equal(e.peak_engine, 4 * (2752 + 544));
    expect_release(&e);
    c.optimizer = FSDP_OPTIMIZER_ADAMW;
    assert_int_equal(expect_make(&c, &t.model, &t.units, &e), FSDP_OK);
    assert_int_equal(e.rest.live[FSDP_OPTIM], 4 * 1088);
    assert_int_equal(e.peak_engine, 4 * (2752 + 1088));
    assert_int_equal(e.peak_parameters, 4 * 1568);
    expect_release(&e);
}

static void strategies(void **state)
{
    /* Backward of unit 1: units 0 and 1 are unsharded, 3 and 2 reduced. */
    static const struct wanted zero2 = {
        .step = MLP_FORWARD " R3 R2 R1 R0",
        .resting = 544,
        .parameters = 544 + 2176,
        .full = 2176,
        .grads = 1024,
        .engine = 544 + 1536 + 1024 + 160,
    };
    /* At the reduction of unit 1: its gradient, the result, units 3 and 2. */
    static const struct wanted none = {
        .step = "L3 L2 L1 L0",
        .resting = 2176,
        .parameters = 2176,
        .grads = 1024,
        .engine = 2176 + 1024 + 1024 + 128 + 512,
    };
    static const struct wanted hybrid = {
        .step = MLP_FORWARD " A3 R3 L3 A2 R2 L2 A1 R1 L1 A0 R0 L0",
        .resting = 1088,
        .parameters = 1088 + 1024,
        .full = 1024,
        .grads = 1024,
        .engine = 1088 + 1024 + 1024 + 64 + 256,
    };
    struct wanted alone = none;
    struct testing_model t;
    struct run_case c = testing_case(CASE_SHARD_GRAD_OP, 4, 1);

    (void)state;
    testing_mlp(&t);
    check(&t, &c, &zero2);
    c = testing_case(CASE_NO_SHARD, 4, 4);
    check(&t, &c, &none);
    c = testing_case(CASE_HYBRID_SHARD, 4, 2);
    check(&t, &c, &hybrid);
    c = testing_case(CASE_FULL_SHARD, 1, 1);
    alone.step = "";
    check(&t, &c, &alone);
}

static void the_whole_model_as_one_unit(void **state)
{
    static const struct wanted want = {
        .step = "A0 A0 R0",
        .resting = 544,
        .parameters = 544 + 2176,
        .full = 2176,
        .grads = 2176,
        .engine = 544 + 2176 + 2176,
    };
    struct testing_model t;
    struct run_case c = testing_case(CASE_FULL_SHARD, 4, 1);

    (void)state;
    testing_model(&t, "00000", "1:512 2:1024 3:512 4:128",
                  "F1 f1 F2 f2 F3 f3 F4 f4 B4 b4 B3 b3 B2 b2 B1 b1", "F1 f1");
    check(&t, &c, &want);
}

static void a_root_around_its_blocks(void **state)
{
    /* The root's window is open while each block's is: 10 + 30. */
    static const struct wanted resharded = {
        .step = "A0 A1 A2 A0 A2 R2 A1 R1 R0",
        .resting = 30,
        .parameters = 70,
        .full = 40,
        .grads = 40,
        .engine = 110,
    };
    struct wanted kept = resharded;
    struct testing_model t;
    struct run_case c = testing_case(CASE_FULL_SHARD, 2, 1);

    (void)state;
    testing_model(&t, "012", "0:10 1:20 2:30",
                  "F0 F1 f1 F2 f2 f0 B0 B2 b2 B1 b1 b0", "F0 F1 f1 F2 f2 f0");
    check(&t, &c, &resharded);
    c.keep_root = 1;
    kept.step = "A0 A1 A2 A2 R2 A1 R1 R0";
    check(&t, &c, &kept);
    /* An evaluation has no backward to keep anything for. */
    c.scenario = CASE_EVAL;
    c.strategy = CASE_SHARD_GRAD_OP;
    kept.step = "A0 A1 A2 R2 R1 R0 A0 A1 A2";
    kept.full = 60;
    kept.parameters = 90;
    /* Backward of 2: all unsharded, the root's gradient and its own. */
    kept.engine = 30 + 60 + 40;
    check(&t, &c, &kept);
}

static void microbatches(void **state)
{
    /* Backward of unit 1 in the second: a fresh gradient beside the sum, and
     * the sums of unit 0 and 1 pending. */
    static const struct wanted pending = {
        .step = MLP_FORWARD " A3 A2 A1 A0 " MLP_STEP,
        .resting = 544,
        .parameters = 1568,
        .full = 1024,
        .grads = 2176,
        .staging = 1024,
        .engine = 544 + 1024 + 1536 + 1024 + 160,
    };
    /* All gradient shards exist when the second reduces: 256 of unit 1 are
     * its staging. */
    static const struct wanted reduced = {
        .step = MLP_STEP " " MLP_STEP,
        .resting = 544,
        .parameters = 1568,
        .full = 1024,
        .grads = 1024,
        .staging = 256,
        .engine = 544 + 1024 + 1024 + 544,
    };
    struct testing_model t;
    struct run_case c = testing_case(CASE_FULL_SHARD, 4, 1);

    (void)state;
    testing_mlp(&t);
    c.microbatches = 2;
    c.sync[0] = 0;
    c.sync[1] = 1;
    check(&t, &c, &pending);
    c.sync[0] = 1;
    check(&t, &c, &reduced);
}

static void scenarios(void **state)
{
    struct wanted want = mlp;
    struct testing_model t;
    struct run_case c = testing_case(CASE_FULL_SHARD, 4, 1);

    (void)state;
    testing_mlp(&t);
    /* 10 of 16 points: the forward and the backward of unit 3. */
    c.scenario = CASE_CANCEL;
    want.step = MLP_FORWARD " A3 R3 " MLP_STEP;
    check(&t, &c, &want);
    c.scenario = CASE_EVAL;
    want.step = MLP_STEP " " MLP_FORWARD;
    check(&t, &c, &want);
    c.scenario = CASE_SUMMON;
    want.step = MLP_STEP;
    want.end = MLP_FORWARD;
    want.full = 2176;
    want.parameters = 544 + 2176;
    check(&t, &c, &want);
    c.scenario = CASE_OPTIONS;
    want = (struct wanted){
        .step = "", .resting = 544, .parameters = 544, .engine = 544};
    check(&t, &c, &want);
}

static void a_cancel_in_the_middle_of_a_window(void **state)
{
    /* 12 points, 7 of them: the root and block 2 are open when it ends. */
    static const struct wanted want = {
        .step = "A0 A1 A2 A0 A0 A1 A2 A0 A2 R2 A1 R1 R0",
        .resting = 30,
        .parameters = 70,
        .full = 40,
        .grads = 40,
        .engine = 110,
    };
    struct testing_model t;
    struct run_case c = testing_case(CASE_FULL_SHARD, 2, 1);

    (void)state;
    testing_model(&t, "012", "0:10 1:20 2:30",
                  "F0 F1 f1 F2 f2 f0 B0 B2 b2 B1 b1 b0", "F0 f0");
    c.scenario = CASE_CANCEL;
    check(&t, &c, &want);
}

static void a_unit_of_two_modules_apart(void **state)
{
    /* Unit 0's window spans unit 1's: 6 + 6 at once. */
    static const struct wanted want = {
        .step = "A0 A1 A0 A1 R1 R0",
        .resting = 6,
        .parameters = 18,
        .full = 12,
        .grads = 12,
        .engine = 6 + 12 + 12,
    };
    struct testing_model t;
    struct run_case c = testing_case(CASE_FULL_SHARD, 2, 1);

    (void)state;
    testing_model(&t, "-010", "1:4 2:6 3:2",
                  "F1 f1 F2 f2 F3 f3 B3 b3 B2 b2 B1 b1", "F1 f1");
    check(&t, &c, &want);
}

static void two_forwards_then_two_backwards(void **state)
{
    /* One phase each, so one window: both open, and at the second backward
     * of unit 1 a fresh gradient beside both sums. */
    static const struct wanted want = {
        .step = "A0 A1 A1 A0 R1 R0",
        .resting = 5,
        .parameters = 15,
        .full = 10,
        .grads = 10,
        .staging = 6,
        .engine = 5 + 10 + 10 + 6,
    };
    struct testing_model t;
    struct run_case c = testing_case(CASE_FULL_SHARD, 2, 1);

    (void)state;
    testing_model(&t, "-01", "1:4 2:6",
                  "F1 f1 F2 f2 F1 f1 F2 f2 B2 b2 B1 b1 B2 b2 B1 b1", "F1 f1");
    check(&t, &c, &want);
}

static void four_phases(void **state)
{
    /* The second reduction is staged: 8 + 4 + 4, beside 4 at rest; larger is
     * the second backward: unsharded, gradient, its shard. */
    static const struct wanted resharded = {
        .step = "A0 A0 R0 A0 A0 R0",
        .resting = 4,
        .parameters = 12,
        .full = 8,
        .grads = 8,
        .staging = 4,
        .engine = 4 + 8 + 8 + 4,
    };
    struct wanted kept = resharded;
    struct testing_model t;
    struct run_case c = testing_case(CASE_FULL_SHARD, 2, 1);

    (void)state;
    testing_model(&t, "-0", "1:8", "F1 f1 B1 b1 F1 f1 B1 b1", "F1 f1");
    check(&t, &c, &resharded);
    c.strategy = CASE_SHARD_GRAD_OP;
    kept.step = "A0 R0 A0 R0";
    check(&t, &c, &kept);
}

static void a_recomputed_forward(void **state)
{
    static const struct wanted want = {
        .step = "A0 A1 A1 A0 R1 R0",
        .resting = 5,
        .parameters = 15,
        .full = 10,
        .grads = 10,
        .engine = 5 + 10 + 10,
    };
    struct testing_model t;
    struct run_case c = testing_case(CASE_FULL_SHARD, 2, 1);

    (void)state;
    testing_model(&t, "-01", "1:4 2:6", "F1 f1 F2 f2 B2 R1 r1 b2 B1 b1",
                  "F1 f1");
    check(&t, &c, &want);
}

static void empty_and_uneven_units(void **state)
{
    /* 5 elements over 4 ranks: 2 each, 8 padded; and a unit of nothing. */
    static const struct wanted want = {
        .step = "A0 A1 A1 R1 A0 R0",
        .resting = 2,
        .parameters = 10,
        .full = 8,
        .grads = 8,
        .engine = 18,
    };
    struct testing_model t;
    struct run_case c = testing_case(CASE_FULL_SHARD, 4, 1);

    (void)state;
    testing_model(&t, "-01", "1:5 2:0", "F1 f1 F2 f2 B2 b2 B1 b1", "F1 f1");
    check(&t, &c, &want);
}

static void assert_storage(const struct testing_model *t,
                           const struct run_case *c, uint64_t lines)
{
    struct expect e;

    assert_int_equal(expect_make(c, &t->model, &t->units, &e), FSDP_OK);
    assert_int_equal(e.peak_storage, 64 * lines);
    expect_release(&e);
}

/* 5 elements, 8 padded, a shard of 2: each is a line of 16. */
static void storage_is_in_whole_lines(void **state)
{
    struct testing_model t;
    struct run_case c = testing_case(CASE_FULL_SHARD, 4, 1);

    (void)state;
    testing_model(&t, "-01", "1:5 2:0", "F1 f1 F2 f2 B2 b2 B1 b1", "F1 f1");
    c.optimizer = FSDP_OPTIMIZER_ADAMW;
    assert_storage(&t, &c, 3 + 2);
    c.microbatches = 2;
    c.sync[0] = c.sync[1] = 1;
    assert_storage(&t, &c, 3 + 1 + 2); /* and the first one's sum */
    c.sync[0] = 0;
    assert_storage(&t, &c, 3 + 2 + 1); /* and a fresh gradient */
    /* A cancelled pass leaves none of it. */
    c.scenario = CASE_CANCEL;
    assert_storage(&t, &c, 3 + 2 + 1);
}

static void running_ahead(void **state)
{
    struct wanted want = mlp;
    struct testing_model t;
    struct run_case c = testing_case(CASE_FULL_SHARD, 4, 1);

    (void)state;
    testing_mlp(&t);
    c.prefetch_forward = 1;
    want.full = 2048;
    want.parameters = 544 + 2048;
    want.engine = 2752 + 1024;
    check(&t, &c, &want);
    c.prefetch_backward = 3; /* no more than there is */
    want.full = 2176;
    want.parameters = 544 + 2176;
    want.engine = 2752 + 1152;
    check(&t, &c, &want);
    c.prefetch_forward = c.prefetch_backward = 0;
    c.reduces_in_flight = 2;
    want = mlp;
    want.grads = 2176; /* 1024 + 1024 + 512, but no more than there is */
    want.staging = (1024 + 512) / 4;
    want.engine = 2752 + 1536 + 384;
    check(&t, &c, &want);
}

/* By rows over four ranks: two units of 5 elements in shards of 2, 8 on the
 * wire. They are twice there while they are unpacked, and while they are
 * packed; the gradient is dead before the result is live. */
static void a_layout_that_packs(void **state)
{
    struct wanted want = {.step = "A0 A1 A1 R1 A0 R0",
                          .resting = 4,
                          .parameters = 4 + 5,
                          .full = 5,
                          .grads = 5,
                          .staging = 8,
                          .engine = 4 + 2 + 8 + 5};
    struct testing_model t;
    struct run_case c = testing_case(CASE_FULL_SHARD, 4, 1);

    (void)state;
    testing_model(&t, "-01", "1:5 2:3 2:2", "F1 f1 F2 f2 B2 b2 B1 b1",
                  "F1 f1 F2 f2");
    c.layout = FSDP_LAYOUT_PER_PARAMETER;
    check(&t, &c, &want);
    c.prefetch_forward = c.reduces_in_flight = 1;
    want.full = want.grads = 10;
    want.parameters = 14;
    want.staging = 8 + 8 + 8 + 2;
    want.engine = 19 + 8 + 8 + 2;
    check(&t, &c, &want);
    c.prefetch_forward = c.reduces_in_flight = 0;
    c.microbatches = 2;
    c.sync[0] = c.sync[1] = 1;
    want = (struct wanted){.step = "A0 A1 A1 R1 A0 R0 A0 A1 A1 R1 A0 R0",
                           .resting = 4,
                           .parameters = 9,
                           .full = 5,
                           .grads = 5,
                           .staging = 8 + 2,
                           .engine = 4 + 4 + 8 + 5};
    check(&t, &c, &want);
    c.sync[0] = 0;
    want.step = "A0 A1 A1 A0 A0 A1 A1 R1 A0 R0";
    want.grads = 10;
    want.staging = 8;
    want.engine = 4 + 10 + 8 + 5;
    check(&t, &c, &want);
    /* With one shard nothing is packed. */
    c = testing_case(CASE_NO_SHARD, 2, 2);
    c.layout = FSDP_LAYOUT_PER_PARAMETER;
    want = (struct wanted){.step = "L1 L0",
                           .resting = 10,
                           .parameters = 10,
                           .grads = 5,
                           .engine = 10 + 5 + 5 + 5};
    check(&t, &c, &want);
}

static void check_ahead(const struct testing_model *t, const struct run_case *c,
                        const char *wanted)
{
    struct expect e;
    char text[TESTING_TEXT];

    assert_int_equal(expect_make(c, &t->model, &t->units, &e), FSDP_OK);
    assert_string_equal(testing_sequence(&e, &e.ahead, text), wanted);
    expect_release(&e);
}

/* What may have been gathered when a pass ends half way: no more than the
 * options say, of this phase, and not what is unsharded. */
static void a_cancel_while_running_ahead(void **state)
{
    struct testing_model t;
    struct run_case c = testing_case(CASE_FULL_SHARD, 4, 1);

    (void)state;
    testing_mlp(&t);
    c.prefetch_forward = 2;
    c.prefetch_backward = 2;
    check_ahead(&t, &c, "");
    c.scenario = CASE_CANCEL;
    check_ahead(&t, &c, "A2 A1");
    c.prefetch_backward = 1;
    check_ahead(&t, &c, "A2");
    c.prefetch_backward = 4;
    check_ahead(&t, &c, "A2 A1 A0");
    c.prefetch_backward = 0;
    check_ahead(&t, &c, "");
    c.prefetch_backward = 4;
    c.strategy = CASE_SHARD_GRAD_OP;
    check_ahead(&t, &c, "");
    c.strategy = CASE_NO_SHARD;
    c.replicas = 4;
    check_ahead(&t, &c, "");
    /* 5 of 8 points: the forward is not over, its backward is another phase.
     */
    c = testing_case(CASE_FULL_SHARD, 2, 1);
    c.scenario = CASE_CANCEL;
    c.prefetch_forward = 4;
    c.prefetch_backward = 4;
    testing_model(&t, "012", "0:10 1:20 2:30", "F0 f0 F1 f1 F2 f2 B0 b0",
                  "F0 f0");
    check_ahead(&t, &c, "");
    testing_model(&t, "012", "0:10 1:20 2:30", "F0 F1 f1 f0 F2 f2 F2 f2",
                  "F0 f0");
    check_ahead(&t, &c, "");
    testing_model(&t, "012", "0:10 1:20 2:30", "F0 f0 F0 f0 F0 f0 F1 f1",
                  "F0 f0");
    check_ahead(&t, &c, "A1");
}

/* A parameter that gets no gradient is never staged, one of a module that is
 * used twice is; a unit that is left out is not trained. */
static void what_a_pass_leaves_alone(void **state)
{
    static const uint8_t idle[] = {0, 0x0f, 0x82, 0};
    struct testing_model t;
    struct run_case c = testing_case(CASE_FULL_SHARD, 2, 1);
    struct expect e;

    (void)state;
    testing_model(&t, "012", "0:10 0:6 1:20 2:30",
                  "F0 f0 F1 f1 F0 f0 B0 b0 B1 b1 B0 b0", "F0 f0");
    assert_int_equal(expect_make_idle(&c, &t.model, &t.units, idle, &e),
                     FSDP_OK);
    assert_int_equal(e.backwards[0], 2);
    assert_int_equal(e.backwards[2], 1);
    assert_int_equal(e.backwards[3], 0);
    assert_int_equal(e.has_gradient[0], 0x0f);
    assert_int_equal(e.has_gradient[1], 0);
    assert_int_equal(e.has_gradient[2], 0x0d);
    assert_int_equal(e.has_gradient[3], 0);
    assert_true(e.seen[0] && e.seen[1] && !e.seen[2] && !e.seen[3]);
    assert_true(e.trained[0] && e.trained[1] && !e.trained[2]);
    /* The second backward of module 0: 10 elements, not 16. Reducing the
     * first time needs no staging. */
    assert_int_equal(e.peak[FSDP_STAGING], 4 * 10);
    expect_release(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_seed_model),
        cmocka_unit_test(optimizers_rest_beside_their_shards),
        cmocka_unit_test(strategies),
        cmocka_unit_test(the_whole_model_as_one_unit),
        cmocka_unit_test(a_root_around_its_blocks),
        cmocka_unit_test(microbatches),
        cmocka_unit_test(scenarios),
        cmocka_unit_test(a_cancel_in_the_middle_of_a_window),
        cmocka_unit_test(a_unit_of_two_modules_apart),
        cmocka_unit_test(two_forwards_then_two_backwards),
        cmocka_unit_test(four_phases),
        cmocka_unit_test(a_recomputed_forward),
        cmocka_unit_test(empty_and_uneven_units),
        cmocka_unit_test(storage_is_in_whole_lines),
        cmocka_unit_test(running_ahead),
        cmocka_unit_test(a_layout_that_packs),
        cmocka_unit_test(a_cancel_while_running_ahead),
        cmocka_unit_test(what_a_pass_leaves_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}

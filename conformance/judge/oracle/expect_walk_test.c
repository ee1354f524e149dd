/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expect_walk_test.c - the oracle's collectives and peaks against numbers
 * that were worked out by hand from the rules of the cycle.
 */
#include "judge/oracle/expect_testing.h"
#include "testing/unit_testing.h"

#define MLP_FORWARD "A0 A1 A2 A3"
#define MLP_STEP    MLP_FORWARD " A3 R3 A2 R2 A1 R1 A0 R0"

static const struct testing_wanted mlp = {.step = MLP_STEP,
                                          .resting = 544,
                                          .full = 1024,
                                          .grads = 1024,
                                          .engine =
                                              544 + 1024 + 1024 + 32 + 128};

UNIT_TEST(the_seed_model)
{
    struct testing_model t;
    struct run_case c = testing_case(CASE_FULL_SHARD, 4, 1);
    struct expect e;
    uint32_t kinds[FSDP_N_COLLECTIVES] = {0};

    testing_mlp(&t);
    testing_check(&t, &c, &mlp);
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

UNIT_TEST(strategies)
{
    /* Backward of unit 1: units 0 and 1 are unsharded, 3 and 2 reduced. */
    static const struct testing_wanted zero2 = {
        .step = MLP_FORWARD " R3 R2 R1 R0",
        .resting = 544,
        .full = 2176,
        .grads = 1024,
        .engine = 544 + 1536 + 1024 + 160,
    };
    /* At the reduction of unit 1: its gradient, the result, units 3 and 2. */
    static const struct testing_wanted none = {
        .step = "L3 L2 L1 L0",
        .resting = 2176,
        .grads = 1024,
        .engine = 2176 + 1024 + 1024 + 128 + 512,
    };
    static const struct testing_wanted hybrid = {
        .step = MLP_FORWARD " A3 R3 L3 A2 R2 L2 A1 R1 L1 A0 R0 L0",
        .resting = 1088,
        .full = 1024,
        .grads = 1024,
        .engine = 1088 + 1024 + 1024 + 64 + 256,
    };
    struct testing_wanted alone = none;
    struct testing_model t;
    struct run_case c = testing_case(CASE_SHARD_GRAD_OP, 4, 1);

    testing_mlp(&t);
    testing_check(&t, &c, &zero2);
    c = testing_case(CASE_NO_SHARD, 4, 4);
    testing_check(&t, &c, &none);
    c = testing_case(CASE_HYBRID_SHARD, 4, 2);
    testing_check(&t, &c, &hybrid);
    c = testing_case(CASE_FULL_SHARD, 1, 1);
    alone.step = "";
    testing_check(&t, &c, &alone);
}

UNIT_TEST(a_root_around_its_blocks)
{
    /* The root's window is open while each block's is: 10 + 30. */
    static const struct testing_wanted resharded = {
        .step = "A0 A1 A2 A0 A2 R2 A1 R1 R0",
        .resting = 30,
        .full = 40,
        .grads = 40,
        .engine = 110,
    };
    struct testing_wanted kept = resharded;
    struct testing_model t;
    struct run_case c = testing_case(CASE_FULL_SHARD, 2, 1);

    testing_model(&t, "012", "0:10 1:20 2:30",
                  "F0 F1 f1 F2 f2 f0 B0 B2 b2 B1 b1 b0", "F0 F1 f1 F2 f2 f0");
    testing_check(&t, &c, &resharded);
    c.keep_root = 1;
    kept.step = "A0 A1 A2 A2 R2 A1 R1 R0";
    testing_check(&t, &c, &kept);
    /* An evaluation has no backward to keep anything for. */
    c.scenario = CASE_EVAL;
    c.strategy = CASE_SHARD_GRAD_OP;
    kept.step = "A0 A1 A2 R2 R1 R0 A0 A1 A2";
    kept.full = 60;
    /* Backward of 2: all unsharded, the root's gradient and its own. */
    kept.engine = 30 + 60 + 40;
    testing_check(&t, &c, &kept);
}

UNIT_TEST(microbatches)
{
    /* Backward of unit 1 in the second: a fresh gradient beside the sum, and
     * the sums of unit 0 and 1 pending. */
    static const struct testing_wanted pending = {
        .step = MLP_FORWARD " A3 A2 A1 A0 " MLP_STEP,
        .resting = 544,
        .full = 1024,
        .grads = 2176,
        .staging = 1024,
        .engine = 544 + 1024 + 1536 + 1024 + 160,
    };
    /* All gradient shards exist at the second reduction of a unit: the 256
     * elements of unit 1 are its staging. */
    static const struct testing_wanted reduced = {
        .step = MLP_STEP " " MLP_STEP,
        .resting = 544,
        .full = 1024,
        .grads = 1024,
        .staging = 256,
        .engine = 544 + 1024 + 1024 + 544,
    };
    struct testing_model t;
    struct run_case c = testing_case(CASE_FULL_SHARD, 4, 1);

    testing_mlp(&t);
    c.microbatches = 2;
    c.sync[0] = 0;
    c.sync[1] = 1;
    testing_check(&t, &c, &pending);
    c.sync[0] = 1;
    testing_check(&t, &c, &reduced);
}

UNIT_TEST(scenarios)
{
    struct testing_wanted want = mlp;
    struct testing_model t;
    struct run_case c = testing_case(CASE_FULL_SHARD, 4, 1);

    testing_mlp(&t);
    /* 10 of 16 points: the forward and the backward of unit 3. */
    c.scenario = CASE_CANCEL;
    want.step = MLP_FORWARD " A3 R3 " MLP_STEP;
    testing_check(&t, &c, &want);
    c.scenario = CASE_EVAL;
    want.step = MLP_STEP " " MLP_FORWARD;
    testing_check(&t, &c, &want);
    c.scenario = CASE_SUMMON;
    want.step = MLP_STEP;
    want.end = MLP_FORWARD;
    want.full = 2176;
    testing_check(&t, &c, &want);
    c.scenario = CASE_OPTIONS;
    want = (struct testing_wanted){.step = "", .resting = 544, .engine = 544};
    testing_check(&t, &c, &want);
}

/* Action by action: gradients that are pending outlive an evaluation, those
 * that are reduced are there until zero. */
UNIT_TEST(a_script_of_its_own)
{
    static const uint32_t collectives[] = {8, 4, 12, 0, 0};
    const struct case_script *s;
    struct fsdp_error error;
    struct testing_model t;
    struct run_case c = testing_case(CASE_FULL_SHARD, 4, 1);
    struct expect e;

    assert_int_equal(script_give("script 1;--;pass 0.0 n;eval 0.0;pass 0.0 s;"
                                 "look;zero",
                                 &s, &error),
                     FSDP_OK);
    case_play_script(&c, s);
    testing_mlp(&t);
    assert_int_equal(expect_make(&c, &t.model, &t.units, &e), FSDP_OK);
    assert_int_equal(e.n_events, 5);
    for (uint32_t i = 0; i < 5; i++) {
        const uint64_t *rest = e.event[i].rest;

        assert_int_equal(e.event[i].seen.n, collectives[i]);
        assert_int_equal(e.event[i].ahead.n, 0);
        assert_int_equal(rest[FSDP_PARAM_FULL], 0);
        assert_int_equal(rest[FSDP_GRAD_FULL], i < 2 ? 4 * 2176 : 0);
        assert_int_equal(rest[FSDP_GRAD_SHARD], i == 2 || i == 3 ? 4 * 544 : 0);
    }
    assert_true(e.event[3].reduced[0] && e.event[3].reduced[3]);
    assert_null(e.event[2].reduced);
    expect_release(&e);
}

/* A place behind the last point is none, and what was made until then is given
 * back. */
UNIT_TEST(a_script_that_no_pass_is_as_long_as)
{
    const struct case_script *s;
    struct fsdp_error error;
    struct testing_model t;
    struct run_case c = testing_case(CASE_FULL_SHARD, 4, 1);
    struct expect e;

    assert_int_equal(
        script_give("script 1;--;pass 0.0 s until 1000", &s, &error), FSDP_OK);
    case_play_script(&c, s);
    testing_mlp(&t);
    assert_int_equal(expect_make(&c, &t.model, &t.units, &e), FSDP_ERR_INVALID);
}

/* By rows over four ranks: two units of 5 elements in shards of 2, 8 on the
 * wire. They are twice there while they are unpacked, and while they are
 * packed; the gradient is dead before the result is live. */
UNIT_TEST(a_layout_that_packs)
{
    struct testing_wanted want = {.step = "A0 A1 A1 R1 A0 R0",
                                  .resting = 4,
                                  .full = 5,
                                  .grads = 5,
                                  .staging = 8,
                                  .engine = 4 + 2 + 8 + 5};
    struct testing_model t;
    struct run_case c = testing_case(CASE_FULL_SHARD, 4, 1);

    testing_model(&t, "-01", "1:5 2:3 2:2", "F1 f1 F2 f2 B2 b2 B1 b1",
                  "F1 f1 F2 f2");
    c.layout = FSDP_LAYOUT_PER_PARAMETER;
    testing_check(&t, &c, &want);
    c.prefetch_forward = c.reduces_in_flight = 1;
    want.full = want.grads = 10;
    want.staging = 8 + 8 + 8 + 2;
    want.engine = 19 + 8 + 8 + 2;
    testing_check(&t, &c, &want);
    c.prefetch_forward = c.reduces_in_flight = 0;
    c.microbatches = 2;
    c.sync[0] = c.sync[1] = 1;
    want =
        (struct testing_wanted){.step = "A0 A1 A1 R1 A0 R0 A0 A1 A1 R1 A0 R0",
                                .resting = 4,
                                .full = 5,
                                .grads = 5,
                                .staging = 8 + 2,
                                .engine = 4 + 4 + 8 + 5};
    testing_check(&t, &c, &want);
    c.sync[0] = 0;
    want.step = "A0 A1 A1 A0 A0 A1 A1 R1 A0 R0";
    want.grads = 10;
    want.staging = 8;
    want.engine = 4 + 10 + 8 + 5;
    testing_check(&t, &c, &want);
    /* With one shard nothing is packed. */
    c = testing_case(CASE_NO_SHARD, 2, 2);
    c.layout = FSDP_LAYOUT_PER_PARAMETER;
    want = (struct testing_wanted){
        .step = "L1 L0", .resting = 10, .grads = 5, .engine = 10 + 5 + 5 + 5};
    testing_check(&t, &c, &want);
}

/* A parameter that gets no gradient is never staged, one of a module that is
 * used twice is; a unit that is left out is not trained. */
UNIT_TEST(what_a_pass_leaves_alone)
{
    static const uint8_t idle[] = {0, 0x0f, 0x82, 0};
    struct testing_model t;
    struct run_case c = testing_case(CASE_FULL_SHARD, 2, 1);
    struct expect e;

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

/* A model, and what must be computed for one case of it. */
struct by_hand {
    const char *units, *parameters, *train;
    uint32_t ranks;
    struct testing_wanted want;
    uint32_t strategy, scenario;
    const char *eval; /* NULL: the first module */
};

static void a_model_by_hand(void **state)
{
    const struct by_hand *m = *state;
    struct testing_model t;
    struct run_case c = testing_case(m->strategy, m->ranks, 1);

    c.scenario = m->scenario;
    testing_model(&t, m->units, m->parameters, m->train,
                  m->eval ? m->eval : "F1 f1");
    testing_check(&t, &c, &m->want);
}

static struct by_hand whole_model_as_one_unit = {
    "00000",
    "1:512 2:1024 3:512 4:128",
    "F1 f1 F2 f2 F3 f3 F4 f4 B4 b4 B3 b3 B2 b2 B1 b1",
    4,
    .want = {.step = "A0 A0 R0",
             .resting = 544,
             .full = 2176,
             .grads = 2176,
             .engine = 544 + 2176 + 2176},
};
/* 12 points, 7 of them: the root and block 2 are open when it ends. */
static struct by_hand cancel_in_the_middle_of_a_window = {
    "012",
    "0:10 1:20 2:30",
    "F0 F1 f1 F2 f2 f0 B0 B2 b2 B1 b1 b0",
    2,
    .eval = "F0 f0",
    .want = {.step = "A0 A1 A2 A0 A0 A1 A2 A0 A2 R2 A1 R1 R0",
             .resting = 30,
             .full = 40,
             .grads = 40,
             .engine = 110},
    .scenario = CASE_CANCEL,
};
/* Unit 0's window spans unit 1's: 6 + 6 at once. */
static struct by_hand unit_of_two_modules_apart = {
    "-010",
    "1:4 2:6 3:2",
    "F1 f1 F2 f2 F3 f3 B3 b3 B2 b2 B1 b1",
    2,
    .want = {.step = "A0 A1 A0 A1 R1 R0",
             .resting = 6,
             .full = 12,
             .grads = 12,
             .engine = 6 + 12 + 12},
};
/* One phase each, so one window: both open, and at the second backward of
 * unit 1 a fresh gradient beside both sums. */
static struct by_hand two_forwards_then_two_backwards = {
    "-01",
    "1:4 2:6",
    "F1 f1 F2 f2 F1 f1 F2 f2 B2 b2 B1 b1 B2 b2 B1 b1",
    2,
    .want = {.step = "A0 A1 A1 A0 R1 R0",
             .resting = 5,
             .full = 10,
             .grads = 10,
             .staging = 6,
             .engine = 5 + 10 + 10 + 6},
};
/* The second reduction is staged: 8 + 4 + 4, beside 4 at rest; larger is the
 * second backward: unsharded, gradient, its shard. */
static struct by_hand four_phases = {
    "-0",
    "1:8",
    "F1 f1 B1 b1 F1 f1 B1 b1",
    2,
    .want = {.step = "A0 A0 R0 A0 A0 R0",
             .resting = 4,
             .full = 8,
             .grads = 8,
             .staging = 4,
             .engine = 4 + 8 + 8 + 4},
};
static struct by_hand four_phases_kept_unsharded = {
    "-0",
    "1:8",
    "F1 f1 B1 b1 F1 f1 B1 b1",
    2,
    .want = {.step = "A0 R0 A0 R0",
             .resting = 4,
             .full = 8,
             .grads = 8,
             .staging = 4,
             .engine = 4 + 8 + 8 + 4},
    .strategy = CASE_SHARD_GRAD_OP,
};
static struct by_hand recomputed_forward = {
    "-01",
    "1:4 2:6",
    "F1 f1 F2 f2 B2 R1 r1 b2 B1 b1",
    2,
    .want = {.step = "A0 A1 A1 A0 R1 R0",
             .resting = 5,
             .full = 10,
             .grads = 10,
             .engine = 5 + 10 + 10},
};
/* 5 elements over 4 ranks: 2 each, 8 padded; and a unit of nothing. */
static struct by_hand empty_and_uneven_units = {
    "-01",
    "1:5 2:0",
    "F1 f1 F2 f2 B2 b2 B1 b1",
    4,
    .want = {.step = "A0 A1 A1 R1 A0 R0",
             .resting = 2,
             .full = 8,
             .grads = 8,
             .engine = 18},
};

#define BY_HAND(model)                                \
    {                                                 \
#        model, a_model_by_hand, NULL, NULL, &(model) \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_seed_model),
        cmocka_unit_test(strategies),
        cmocka_unit_test(a_root_around_its_blocks),
        cmocka_unit_test(microbatches),
        cmocka_unit_test(scenarios),
        cmocka_unit_test(a_script_of_its_own),
        cmocka_unit_test(a_script_that_no_pass_is_as_long_as),
        cmocka_unit_test(a_layout_that_packs),
        cmocka_unit_test(what_a_pass_leaves_alone),
        BY_HAND(whole_model_as_one_unit),
        BY_HAND(cancel_in_the_middle_of_a_window),
        BY_HAND(unit_of_two_modules_apart),
        BY_HAND(two_forwards_then_two_backwards),
        BY_HAND(four_phases),
        BY_HAND(four_phases_kept_unsharded),
        BY_HAND(recomputed_forward),
        BY_HAND(empty_and_uneven_units),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}

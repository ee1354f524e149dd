/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expect_ahead_test.c - what the oracle allows an engine that runs ahead,
 * against numbers that were worked out by hand: peaks, and what a cancelled
 * pass may have gathered.
 */
#include "judge/oracle/expect_testing.h"
#include "testing/unit_testing.h"

UNIT_TEST(running_ahead)
{
    const struct testing_wanted strict = {
        .step = "A0 A1 A2 A3 A3 R3 A2 R2 A1 R1 A0 R0",
        .resting = 544,
        .full = 1024,
        .grads = 1024,
        .engine = 2752};
    struct testing_wanted want = strict;
    struct testing_model t;
    struct run_case c = testing_case(CASE_FULL_SHARD, 4, 1);

    testing_mlp(&t);
    /* Unit 1 and unit 2 that comes next: 1024 + 512. The total has its peak in
     * backward, where nothing comes early. */
    c.prefetch_forward = 1;
    want.full = 1536;
    testing_check(&t, &c, &want);
    /* At unit 3 all of them; when the total has its peak, at unit 1, unit 0 is
     * all that comes. */
    c.prefetch_backward = 3;
    want.full = 2176;
    want.engine = 2752 + 512;
    testing_check(&t, &c, &want);
    c.prefetch_forward = c.prefetch_backward = 0;
    c.reduces_in_flight = 2;
    want = strict;
    want.grads = 2176; /* 1024 + 1024 + 512, but no more than there is */
    want.staging = (1024 + 512) / 4;
    want.engine = 2752 + 1536 + 384;
    testing_check(&t, &c, &want);
}

/* Elements of float32 that are staged at once, on the device and on the host.
 */
static void assert_staged(const struct testing_model *t,
                          const struct run_case *c, uint64_t device,
                          uint64_t host)
{
    struct expect e;

    assert_int_equal(expect_make(c, &t->model, &t->units, &e), FSDP_OK);
    assert_int_equal(e.peak[FSDP_STAGING], 4 * device);
    assert_int_equal(e.peak[RECORD_HOST + FSDP_STAGING], 4 * host);
    expect_release(&e);
}

/* Four shards of 128, 256, 128 and 32 elements, on the host. */
UNIT_TEST(running_ahead_of_the_host)
{
    struct testing_model t;
    struct run_case c = testing_case(CASE_FULL_SHARD, 4, 1);

    testing_mlp(&t);
    c.offload = CASE_OFFLOAD_ALL;
    /* A result before it is copied, and as it is added on the host. */
    assert_staged(&t, &c, 256, 0);
    c.microbatches = 2;
    c.sync[1] = 1;
    assert_staged(&t, &c, 256, 256);
    c.prefetch_forward = 2; /* shards are copied to their places */
    assert_staged(&t, &c, 256, 256);
    c.reduces_in_flight = 2;
    assert_staged(&t, &c, 256 + 256 + 128, 256 + 256 + 128);
    /* Shards that are cast are staged; fresh gradients have 16 bits in any
     * case. */
    c.reduces_in_flight = 0;
    c.precision = CASE_BF16;
    assert_staged(&t, &c, 512 + 256 + 128, 256);
    c.offload = CASE_OFFLOAD_OPTIMIZER;
    assert_staged(&t, &c, 512, 256);
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

/* Units that may have been gathered when a pass ends half way: no more than the
 * options say, only of this phase, and none that is unsharded anyway. */
UNIT_TEST(a_cancel_while_running_ahead)
{
    struct testing_model t;
    struct run_case c = testing_case(CASE_FULL_SHARD, 4, 1);

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(running_ahead),
        cmocka_unit_test(running_ahead_of_the_host),
        cmocka_unit_test(a_cancel_while_running_ahead),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}

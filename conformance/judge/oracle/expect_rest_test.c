/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expect_rest_test.c - what the oracle says of memory between passes: shards
 * and the optimizer's states, on the device or on the host, and the whole lines
 * of storage that they take.
 */
#include "judge/oracle/expect_testing.h"
#include "testing/unit_testing.h"

UNIT_TEST(optimizers_rest_beside_their_shards)
{
    struct testing_model t;
    struct run_case c = testing_case(CASE_FULL_SHARD, 4, 1);
    struct expect e;

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

static void assert_storage(const struct testing_model *t,
                           const struct run_case *c, uint64_t lines)
{
    struct expect e;

    assert_int_equal(expect_make(c, &t->model, &t->units, &e), FSDP_OK);
    assert_int_equal(e.peak_storage, 64 * lines);
    expect_release(&e);
}

/* What rests where, and how many copies a step makes, of how many elements. */
static const struct offload_row {
    uint32_t offload;
    uint64_t device, host; /* at rest, in shards of the model */
    uint64_t staging;      /* elements, on the host at once */
    uint64_t to_device, to_device_shards, to_host, to_host_shards;
} offload_rows[] = {
    {CASE_NOT_OFFLOADED, 3, 0, 0, 0, 0, 0, 0},
    {CASE_OFFLOAD_ALL, 0, 3, 0, 8, 2, 4, 1},
    /* A step moves each shard there and back. */
    {CASE_OFFLOAD_OPTIMIZER, 1, 2, 256, 4, 1, 8, 2},
    {CASE_OFFLOAD_PARAMS, 2, 1, 0, 12, 3, 4, 1},
};

/* Four units of 128, 256, 128 and 32 elements a shard, with AdamW. */
UNIT_TEST(what_rests_on_the_host)
{
    const uint64_t shard = 4UL * 544; /* its bytes */
    struct testing_model t;
    struct run_case c = testing_case(CASE_FULL_SHARD, 4, 1);

    testing_mlp(&t);
    c.optimizer = FSDP_OPTIMIZER_ADAMW;
    for (size_t i = 0; i < sizeof(offload_rows) / sizeof(*offload_rows); i++) {
        const struct offload_row *row = &offload_rows[i];
        const uint64_t *live;
        struct expect e;

        c.offload = row->offload;
        assert_int_equal(expect_make(&c, &t.model, &t.units, &e), FSDP_OK);
        live = e.rest.live;
        assert_int_equal(live[FSDP_PARAM_SHARD] + live[FSDP_OPTIM],
                         row->device * shard);
        assert_int_equal(live[RECORD_HOST + FSDP_PARAM_SHARD] +
                             live[RECORD_HOST + FSDP_OPTIM],
                         row->host * shard);
        assert_int_equal(e.peak[RECORD_HOST + FSDP_STAGING], 4 * row->staging);
        assert_int_equal(e.peak[FSDP_GRAD_SHARD] +
                             e.peak[RECORD_HOST + FSDP_GRAD_SHARD],
                         shard);
        assert_int_equal(e.hosted.to_device, row->to_device);
        assert_int_equal(e.hosted.to_device_bytes,
                         row->to_device_shards * shard);
        assert_int_equal(e.hosted.to_host, row->to_host);
        assert_int_equal(e.hosted.to_host_bytes, row->to_host_shards * shard);
        expect_release(&e);
    }
}

/* 5 elements, 8 padded, a shard of 2: each is a line of 16. */
UNIT_TEST(storage_is_in_whole_lines)
{
    struct testing_model t;
    struct run_case c = testing_case(CASE_FULL_SHARD, 4, 1);

    testing_model(&t, "-01", "1:5 2:0", "F1 f1 F2 f2 B2 b2 B1 b1", "F1 f1");
    c.optimizer = FSDP_OPTIMIZER_ADAMW;
    assert_storage(&t, &c, 3 + 2);
    c.microbatches = 2;
    c.sync[0] = c.sync[1] = 1;
    assert_storage(&t, &c, 3 + 1 + 2); /* and the first one's sum */
    c.sync[0] = 0;
    assert_storage(&t, &c, 3 + 2 + 1); /* and a fresh gradient */
    /* A cancelled pass leaves nothing behind. */
    c.scenario = CASE_CANCEL;
    assert_storage(&t, &c, 3 + 2 + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(optimizers_rest_beside_their_shards),
        cmocka_unit_test(what_rests_on_the_host),
        cmocka_unit_test(storage_is_in_whole_lines),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}

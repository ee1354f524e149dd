/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_bytes_test.c - plan counts what the oracle says, for every case of the
 * manifest; and numbers that were worked out by hand where the oracle has none:
 * other dtypes, the wire, worlds that are never run.
 */
#include "cases/case_model.h"
#include "models/text.h"
#include "testing/unit_testing.h"
#include "tools/plan/plan_testing.h"

#include <string.h>

static struct plan_bytes count(const struct plan_ask *ask)
{
    struct fsdp_error error = {0};
    struct plan_bytes b;

    if (plan_bytes_make(ask, &b, &error) != FSDP_OK) {
        fail_msg("%s", error.message);
    }
    return b;
}

static void add_calls(const struct record_sequence *s,
                      uint32_t kinds[FSDP_N_COLLECTIVES])
{
    for (uint32_t i = 0; i < s->n; i++) {
        kinds[s->c[i].kind]++;
    }
}

/* Each kind's peak is that of some moment, where nothing runs ahead. */
static void compare_moments(const char *id, const struct plan_bytes *b)
{
    for (uint32_t k = 0; k < FSDP_N_KINDS; k++) {
        uint64_t most = b->rest.live[k];

        for (uint32_t i = 0; i < b->n_moments; i++) {
            const uint64_t live = b->moment[i].live[k];

            most = live > most ? live : most;
        }
        if (most != b->peak[k]) {
            fail_msg("%s: %s: no moment has its peak", id, record_kind_name(k));
        }
    }
    assert_int_equal(b->ahead, 0);
}

static void compare_host(const struct plan_bytes *b, const struct expect *e)
{
    uint64_t rest = 0;
    uint64_t peaks = 0;

    for (uint32_t k = RECORD_HOST; k < RECORD_N_KINDS; k++) {
        rest += e->rest.live[k];
        peaks += e->peak[k];
    }
    assert_int_equal(b->host_rest, rest);
    assert_int_equal(b->host_peaks, peaks);
    assert_true(b->host_peak >= rest && b->host_peak <= peaks);
    assert_memory_equal(&b->copied, &e->hosted, sizeof(e->hosted));
}

static void compare(const char *id, const struct plan_bytes *b,
                    const struct expect *e)
{
    uint32_t kinds[FSDP_N_COLLECTIVES] = {0};
    uint64_t last = 0;
    /* A script may begin with what is no step. */
    const bool steps = case_trains(e->c) && !case_is_script(e->c);

    for (uint32_t k = 0; k < FSDP_N_KINDS; k++) {
        if (b->peak[k] != e->peak[k] || b->rest.live[k] != e->rest.live[k]) {
            fail_msg("%s: %s: peak %llu, the oracle's %llu", id,
                     record_kind_name(k), (unsigned long long)b->peak[k],
                     (unsigned long long)e->peak[k]);
        }
        last += b->fullest.live[k];
    }
    if (b->peak_parameters != e->peak_parameters ||
        b->peak_sum != e->peak_engine || last + b->ahead != b->peak_sum ||
        b->elements != e->total) {
        fail_msg("%s: peaks differ from the oracle's", id);
    }
    compare_host(b, e);
    if (steps) {
        assert_true(b->n_moments > 0);
        assert_memory_equal(&b->moment[0], &b->rest, sizeof(b->rest));
    }
    if (steps && e->c->prefetch_forward == 0 && e->c->prefetch_backward == 0 &&
        e->c->reduces_in_flight == 0) {
        compare_moments(id, b);
    }
    add_calls(&e->step, kinds);
    add_calls(&e->end, kinds);
    add_calls(&e->ahead, kinds);
    for (uint32_t i = 0; i < e->n_events; i++) { /* of a script */
        add_calls(&e->event[i].seen, kinds);
        add_calls(&e->event[i].ahead, kinds);
    }
    assert_memory_equal(kinds, b->collectives, sizeof(kinds));
}

UNIT_TEST(every_case_of_the_manifest)
{
    struct case_list list;
    struct fsdp_error error = {0};
    struct text text;

    assert_int_equal(manifest_make(&list, &error), FSDP_OK);
    assert_int_equal(text_load(NULL, &text, &error), FSDP_OK);
    for (uint32_t i = 0; i < list.n; i++) {
        char id[CASE_ID_BYTES];
        struct case_model m;
        struct expect e;
        struct plan_bytes b;

        case_id(&list.c[i], id);
        assert_int_equal(
            case_model_make(&list.c[i], text.bytes, text.n, &m, &error),
            FSDP_OK);
        assert_int_equal(expect_make_idle(&list.c[i], &m.model->model,
                                          &m.units.units, m.model->idle, &e),
                         FSDP_OK);
        b = count(&(struct plan_ask){.c = list.c[i],
                                     .model = &m.model->model,
                                     .units = &m.units.units,
                                     .idle = m.model->idle});
        compare(id, &b, &e);
        plan_bytes_release(&b);
        expect_release(&e);
        case_model_release(&m);
    }
    assert_int_equal(list.n, manifest_count);
    text_release(&text);
    manifest_release(&list);
}

/* The miniature, K = 4: a peak of M/K + the largest unit, and exercise 16.5.1.
 */
UNIT_TEST(the_wire)
{
    struct testing_model t;
    struct run_case c = testing_case(CASE_FULL_SHARD, 4, 1);
    struct plan_bytes b;
    struct plan_ask ask;

    testing_mlp(&t);
    ask = ask_for(&t, &c);
    b = count(&ask);
    assert_int_equal(b.peak_parameters, 4 * (544 + 1024));
    assert_int_equal(b.sent[FSDP_ALL_GATHER], 2 * 4 * 2176 / 4 * 3);
    assert_int_equal(b.sent[FSDP_REDUCE_SCATTER], 4 * 2176 / 4 * 3);
    plan_bytes_release(&b);
    /* In 16 bits: 9792 bytes, of which all-reduces need two thirds. */
    ask.c.precision = CASE_BF16_REDUCE;
    b = count(&ask);
    assert_int_equal(b.sent_sum, 9792);
    plan_bytes_release(&b);
    ask.c.strategy = CASE_NO_SHARD;
    ask.c.replicas = 4;
    b = count(&ask);
    assert_int_equal(b.sent_sum, 6528);
    assert_int_equal(b.sent[FSDP_ALL_REDUCE], 6528);
    plan_bytes_release(&b);
    ask.c = testing_case(CASE_FULL_SHARD, 1, 1);
    ask.c.precision = CASE_BF16_REDUCE;
    b = count(&ask);
    assert_int_equal(b.sent_sum, 0);
    plan_bytes_release(&b);
    /* Two replicas of two: scatters halves, then all-reduces these. */
    ask.c = testing_case(CASE_HYBRID_SHARD, 4, 2);
    ask.c.precision = CASE_BF16_REDUCE;
    b = count(&ask);
    assert_int_equal(b.sent[FSDP_ALL_GATHER], 2 * 2 * 2176 / 2);
    assert_int_equal(b.sent[FSDP_ALL_REDUCE], 2 * 2176 / 2);
    plan_bytes_release(&b);
}

/* One unit of 8 elements over 2 ranks. Parameters in 16 bits, sums in
 * float32: at the backward a shard (16), a copy (16), the sum (32) and the
 * gradient that joins it (16); then the sum and its shard (48). */
UNIT_TEST(other_dtypes)
{
    struct testing_model t;
    struct run_case c = testing_case(CASE_FULL_SHARD, 2, 1);
    struct plan_bytes b;
    struct plan_ask ask;

    testing_model(&t, "-0", "1:8", "F1 f1 B1 b1", "F1 f1");
    ask = ask_for(&t, &c);
    ask.c.precision = CASE_BF16;
    b = count(&ask);
    assert_int_equal(b.peak_parameters, 16 + 16);
    assert_int_equal(b.peak_sum, 16 + 16 + 32 + 16);
    assert_int_equal(b.fullest.live[FSDP_STAGING], 16);
    plan_bytes_release(&b);
    /* All in 16 bits: the copy and the sum; later the sum (16), the result
     * (8) and the shard of it (16). */
    ask.c.precision = CASE_BF16_REDUCE;
    b = count(&ask);
    assert_int_equal(b.peak[FSDP_GRAD_FULL], 16);
    assert_int_equal(b.peak[FSDP_STAGING], 8);
    assert_int_equal(b.peak_sum, 16 + 16 + 8 + 16);
    plan_bytes_release(&b);
    ask.c.prefetch_forward = 1; /* nothing is left that could come early */
    ask.c.precision = CASE_BF16;
    b = count(&ask);
    assert_int_equal(b.peak_parameters, 16 + 16);
    assert_int_equal(b.ahead, 0);
    plan_bytes_release(&b);
}

/* One unit of 8 elements over 2 ranks under ADAMW: a shard is 16 bytes, and has
 * two windows and one reduction. Shard and states are apart in two of the
 * three, and the shard goes where they are, and back, for a step. */
UNIT_TEST(the_host)
{
    static const struct {
        uint32_t offload;
        uint64_t device, rest, peak, to_device, to_host;
    } row[] = {{CASE_NOT_OFFLOADED, 48, 0, 0, 0, 0},
               {CASE_OFFLOAD_ALL, 0, 48, 64, 32, 16},
               {CASE_OFFLOAD_OPTIMIZER, 16, 32, 64, 16, 32},
               {CASE_OFFLOAD_PARAMS, 32, 16, 16, 48, 16}};
    struct testing_model t;
    struct run_case c = testing_case(CASE_FULL_SHARD, 2, 1);

    c.optimizer = FSDP_OPTIMIZER_ADAMW;
    testing_model(&t, "-0", "1:8", "F1 f1 B1 b1", "F1 f1");
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        struct plan_ask ask = ask_for(&t, &c);
        struct plan_bytes b;

        ask.c.offload = row[i].offload;
        b = count(&ask);
        assert_int_equal(b.rest_sum, row[i].device);
        assert_int_equal(b.host_rest, row[i].rest);
        assert_int_equal(b.host_peak, row[i].peak);
        assert_int_equal(b.copied.to_device_bytes, row[i].to_device);
        assert_int_equal(b.copied.to_host_bytes, row[i].to_host);
        plan_bytes_release(&b);
    }
}

/* 65536 ranks, ten elements each: in no time, as all of them are alike. */
UNIT_TEST(a_large_world)
{
    struct testing_model t;
    struct run_case c = testing_case(CASE_FULL_SHARD, EXPECT_MAX_RANKS, 1);
    struct fsdp_error error = {0};
    struct plan_bytes b;
    struct plan_ask ask;

    testing_model(&t, "-0", "1:655352", "F1 f1 B1 b1", "F1 f1");
    ask = ask_for(&t, &c);
    b = count(&ask);
    assert_int_equal(b.rest_sum, 4 * 10);
    assert_int_equal(b.own_last, 2);
    assert_int_equal(b.padding, 8);
    plan_bytes_release(&b);
    ask.c.replicas = 3;
    assert_int_equal(plan_bytes_make(&ask, &b, &error), FSDP_ERR_INVALID);
    assert_non_null(strstr(error.message, "3 replicas"));
}

UNIT_TEST(what_cannot_be_counted)
{
    struct testing_model t;
    struct run_case c = testing_case(CASE_FULL_SHARD, 4, 1);
    struct fsdp_error error = {0};
    struct plan_bytes b;
    struct plan_ask ask;

    testing_mlp(&t);
    ask = ask_for(&t, &c);
    t.shape[0][0] = (uint64_t)1 << 53;
    b = count(&ask);
    plan_bytes_release(&b);
    t.shape[0][0] = (uint64_t)1 << 54;
    assert_int_equal(plan_bytes_make(&ask, &b, &error), FSDP_ERR_INVALID);
    assert_non_null(strstr(error.message, "2^63"));
    t.shape[0][0] = UINT64_MAX;
    assert_int_equal(plan_bytes_make(&ask, &b, NULL), FSDP_ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_case_of_the_manifest),
        cmocka_unit_test(the_wire),
        cmocka_unit_test(other_dtypes),
        cmocka_unit_test(the_host),
        cmocka_unit_test(a_large_world),
        cmocka_unit_test(what_cannot_be_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}

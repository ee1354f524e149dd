/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_stream_wake_test.c - for which work a thread is woken, and that other
 * work is done as well. Wake-ups are counted; no time is taken.
 */
#include "host_duration.h"
#include "host_testing.h"

#include <fsdp/status.h>

#include "testing/unit_testing.h"

enum {
    LONG_NS = 1000000
};

static int count(void *argument, int failed)
{
    _Atomic uint32_t *n = *(_Atomic uint32_t **)argument;

    (*n)++;
    return failed;
}

static void push_count(struct host_stream *s, _Atomic uint32_t *n, uint64_t ns)
{
    assert_int_equal(host_stream_push(s, count, &n, sizeof(n), ns), FSDP_OK);
}

static struct host_stream *open_stream(void)
{
    struct host_stream *s = NULL;

    assert_int_equal(host_stream_open("wake", &s), FSDP_OK);
    return s;
}

/* No thread waits for the work; other ranks may. */
UNIT_TEST(test_little_work_is_done)
{
    struct host_stream *a = open_stream();
    struct host_stream *b = open_stream();
    _Atomic uint32_t n = 0;

    for (uint32_t i = 1; i <= 50; i++) {
        push_count(a, &n, 0);
        assert_int_equal(host_stream_order(b, a, 0), FSDP_OK);
        push_count(b, &n, 0);
        if (i % 5 == 0) { /* its thread naps, or sleeps, or has just begun */
            sleep_ms(i % 3);
        }
        while (n < 2 * i) {
            sleep_ms(1);
        }
    }
    host_stream_close(a);
    host_stream_close(b);
}

/* Short items together, and as many long ones, in turns: a thread that has run
 * out of work is woken for the long ones alone, and for those at least once in
 * many times. */
static void wakes_for_much_alone(uint32_t items, uint64_t ns)
{
    struct host_stream *s = open_stream();
    uint64_t wakes[2] = {0, 0};
    _Atomic uint32_t n = 0;

    for (uint32_t i = 0; i < 2000; i++) {
        uint64_t before = host_stream_wakes(s);
        for (uint32_t k = 0; k < items; k++) {
            push_count(s, &n, i % 2 * ns);
        }
        wakes[i % 2] += host_stream_wakes(s) - before;
        assert_int_equal(host_stream_wait(s, 0), FSDP_OK);
        sleep_us(i % 100);
    }
    assert_int_equal(n, 2000 * items);
    assert_int_equal(wakes[0], 0);
    assert_true(wakes[1] > 0);
    host_stream_close(s);
}

UNIT_TEST(test_many_wake)
{
    wakes_for_much_alone(50, 1000);
}

UNIT_TEST(test_long_one_wakes)
{
    wakes_for_much_alone(1, LONG_NS);
}

/* A stream that is retained can be asked even after it is closed. */
UNIT_TEST(test_retained)
{
    struct host_stream *a = open_stream();
    struct host_stream *b = open_stream();
    int status = FSDP_ERR_IO;
    _Atomic uint32_t n = 0;
    uint64_t good;
    uint64_t bad;

    push_count(a, &n, 0);
    good = host_stream_mark(a);
    assert_int_equal(host_stream_push(a, fail_with, &status, sizeof(status), 0),
                     FSDP_OK);
    bad = host_stream_mark(a);
    host_stream_retain(a);
    host_stream_close(a);
    assert_int_equal(n, 1);
    assert_int_equal(host_stream_wait(a, good), FSDP_OK);
    assert_int_equal(host_stream_wait(a, bad), FSDP_ERR_IO);
    assert_int_equal(host_stream_order(b, a, good), FSDP_OK);
    assert_int_equal(host_stream_wait(b, 0), FSDP_OK);
    assert_int_equal(host_stream_order(b, a, bad), FSDP_OK);
    host_stream_release(a);
    assert_int_equal(host_stream_wait(b, 0), FSDP_ERR_IO);
    host_stream_close(b);
    host_stream_release(NULL);
}

/* ---- How long is an operator? ------------------------------------------ */

static uint64_t duration(uint32_t kind, uint64_t a, uint64_t b, uint64_t c,
                         uint64_t d, uint64_t bytes)
{
    struct fsdp_op op = {.size = sizeof(op),
                         .kind = kind,
                         .dim = {a, b, c, d},
                         .n_in = 1,
                         .in = {{NULL, bytes}},
                         .n_out = 1,
                         .out = {{NULL, bytes}}};

    return host_duration_of(&op);
}

UNIT_TEST(test_durations)
{
    const uint64_t most = UINT64_MAX;
    const uint64_t second = 1000000000;
    struct fsdp_op wild = {.n_in = 1000, .n_out = 1000};

    assert_true(duration(FSDP_OP_ADD, 16, 0, 0, 0, 64) < 1000);
    assert_true(duration(FSDP_OP_ADD, 1 << 18, 0, 0, 0, 1 << 20) > 50000);
    /* Short ranges, many products. */
    assert_true(duration(FSDP_OP_GEMM, 8, 8, 8, 0, 256) < 1000);
    assert_true(duration(FSDP_OP_GEMM, 256, 256, 256, 0, 0) > 100000);
    assert_true(duration(FSDP_OP_GEMM_GRAD, 256, 256, 256, 1, 0) > 100000);
    assert_true(duration(FSDP_OP_ATTENTION, 1, 256, 8, 32, 0) > 100000);
    assert_true(duration(FSDP_OP_ATTENTION_BACKWARD, 1, 256, 8, 32, 0) >
                duration(FSDP_OP_ATTENTION, 1, 256, 8, 32, 0));
    /* Dimensions that were not checked do no harm. */
    assert_int_equal(duration(FSDP_OP_GEMM, most, most, most, 0, most), second);
    assert_int_equal(
        duration(FSDP_OP_ATTENTION_BACKWARD, most, most, most, most, most),
        second);
    assert_true(host_duration_of(&wild) < 1000);
    assert_int_equal(host_duration_of_copy(most), second);
    assert_true(host_duration_of_copy(1 << 20) > 50000);
    assert_true(host_duration_of_copy(4) < 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_little_work_is_done),
        cmocka_unit_test(test_many_wake),
        cmocka_unit_test(test_long_one_wakes),
        cmocka_unit_test(test_retained),
        cmocka_unit_test(test_durations),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}

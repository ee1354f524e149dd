/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_stream_test.c - order, tickets, failures and the end of streams. Gates
 * hold streams up, so that work that should run without an order is seen to.
 */
#include "host_testing.h"

#include <fsdp/status.h>
#include <stdlib.h>
#include <string.h>

#include "testing/unit_testing.h"

/* Appends a value to a list; the lists are plain memory, so that a race
 * detector sees what streams do not order. */
struct append {
    int *list;
    int *n;
    int value;
};

static int append(void *argument, int failed)
{
    const struct append *a = argument;

    if (failed == FSDP_OK) {
        a->list[(*a->n)++] = a->value;
    }
    return failed;
}

static void push_append(struct host_stream *s, int *list, int *n, int value)
{
    struct append a = {list, n, value};

    assert_int_equal(host_stream_push(s, append, &a, sizeof(a), 0), FSDP_OK);
}

static void push_gate(struct host_stream *s, struct gate *gate)
{
    assert_int_equal(
        host_stream_push(s, pass_gate, &gate, sizeof(struct gate *), 0),
        FSDP_OK);
}

static void push_failure(struct host_stream *s, int status)
{
    assert_int_equal(host_stream_push(s, fail_with, &status, sizeof(status), 0),
                     FSDP_OK);
}

static struct host_stream *open_stream(void)
{
    struct host_stream *s = NULL;

    assert_int_equal(host_stream_open("a name of many bytes", &s), FSDP_OK);
    assert_non_null(s);
    return s;
}

/* More items than the ring holds. */
UNIT_TEST(test_order)
{
    enum {
        N = 4 * HOST_STREAM_ITEMS + 3
    };
    static int list[N];
    struct host_stream *s = open_stream();
    int n = 0;

    for (int i = 0; i < N; i++) {
        push_append(s, list, &n, i);
    }
    assert_int_equal(host_stream_wait(s, 0), FSDP_OK);
    assert_int_equal(n, N);
    for (int i = 0; i < N; i++) {
        assert_int_equal(list[i], i);
    }
    host_stream_close(s);
}

UNIT_TEST(test_close_does_what_was_given)
{
    struct host_stream *s = open_stream();
    struct gate gate = {0};
    int list[8];
    int n = 0;

    push_gate(s, &gate);
    for (int i = 0; i < 8; i++) {
        push_append(s, list, &n, i);
    }
    assert_int_equal(n, 0);
    gate.open = 1;
    host_stream_close(s);
    assert_int_equal(n, 8);
    host_stream_close(open_stream()); /* idle */
    host_stream_close(NULL);
}

/* A wait for an early ticket returns although a later item stands at a gate. */
UNIT_TEST(test_ticket)
{
    struct host_stream *s = open_stream();
    struct gate gate = {0};
    uint64_t none = host_stream_mark(s);
    uint64_t early;
    int list[2];
    int n = 0;

    assert_int_not_equal(none, 0);
    push_append(s, list, &n, 1);
    early = host_stream_mark(s);
    assert_true(early > none);
    push_gate(s, &gate);
    push_append(s, list, &n, 2);
    assert_true(host_stream_mark(s) > early);
    assert_int_equal(host_stream_wait(s, none), FSDP_OK);
    assert_int_equal(host_stream_wait(s, early), FSDP_OK);
    assert_int_equal(n, 1); /* nothing else can run: the gate is closed */
    assert_int_equal(host_stream_wait(s, host_stream_mark(s) + 1),
                     FSDP_ERR_INVALID);
    gate.open = 1;
    assert_int_equal(host_stream_wait(s, 0), FSDP_OK);
    assert_int_equal(n, 2);
    host_stream_close(s);
}

UNIT_TEST(test_order_between_streams)
{
    struct host_stream *a = open_stream();
    struct host_stream *b = open_stream();
    struct gate gate = {0};
    int list[4];
    int n = 0;

    push_gate(a, &gate);
    push_append(a, list, &n, 1);
    assert_int_equal(host_stream_order(b, a, 0), FSDP_OK);
    push_append(b, list, &n, 2);
    assert_int_equal(host_stream_order(a, b, 0), FSDP_OK);
    push_append(a, list, &n, 3);
    sleep_ms(20);
    gate.open = 1;
    assert_int_equal(host_stream_wait(a, 0), FSDP_OK);
    assert_int_equal(n, 3);
    assert_int_equal(list[0] * 100 + list[1] * 10 + list[2], 123);
    assert_int_equal(host_stream_order(a, a, 0), FSDP_OK);
    assert_int_equal(host_stream_order(a, b, host_stream_mark(b) + 1),
                     FSDP_ERR_INVALID);
    host_stream_close(a);
    host_stream_close(b);
}

/* The later stream goes on although the earlier one stands at a gate that comes
 * after the ticket; ticket 0 is all that was given before the call. */
UNIT_TEST(test_order_by_ticket)
{
    struct host_stream *a = open_stream();
    struct host_stream *b = open_stream();
    struct gate gate = {0};
    uint64_t early;
    int list[4];
    int n = 0;

    push_append(a, list, &n, 1);
    early = host_stream_mark(a);
    assert_int_equal(host_stream_order(b, a, 0), FSDP_OK);
    push_gate(a, &gate);
    push_append(b, list, &n, 2);
    assert_int_equal(host_stream_order(b, a, early), FSDP_OK);
    push_append(b, list, &n, 3);
    assert_int_equal(host_stream_wait(b, 0), FSDP_OK);
    assert_int_equal(n, 3);
    gate.open = 1;
    host_stream_close(b);
    host_stream_close(a);
}

/* The earlier stream is closed while the later one has not yet come to its
 * wait for it. */
UNIT_TEST(test_close_before_the_wait)
{
    struct host_stream *a = open_stream();
    struct host_stream *b = open_stream();
    struct gate gate = {0};
    int list[2];
    int n = 0;

    push_gate(b, &gate);
    push_append(a, list, &n, 1);
    assert_int_equal(host_stream_order(b, a, 0), FSDP_OK);
    push_append(b, list, &n, 2);
    host_stream_close(a);
    gate.open = 1;
    assert_int_equal(host_stream_wait(b, 0), FSDP_OK);
    assert_int_equal(n, 2);
    host_stream_close(b);
}

UNIT_TEST(test_failure_sticks)
{
    struct host_stream *a = open_stream();
    struct host_stream *b = open_stream();
    uint64_t before;
    int list[4];
    int n = 0;

    push_append(a, list, &n, 1);
    before = host_stream_mark(a);
    push_failure(a, FSDP_ERR_COMM);
    push_append(a, list, &n, 2);
    push_failure(a, FSDP_ERR_IO);
    assert_int_equal(host_stream_wait(a, before), FSDP_OK);
    assert_int_equal(host_stream_wait(a, before + 1), FSDP_ERR_COMM);
    assert_int_equal(host_stream_wait(a, 0), FSDP_ERR_COMM);
    assert_int_equal(host_stream_wait(a, 0), FSDP_ERR_COMM);
    assert_int_equal(n, 1);

    assert_int_equal(host_stream_order(b, a, before), FSDP_OK);
    push_append(b, list, &n, 3);
    assert_int_equal(host_stream_wait(b, 0), FSDP_OK);
    assert_int_equal(host_stream_order(b, a, 0), FSDP_OK);
    push_append(b, list, &n, 4);
    assert_int_equal(host_stream_wait(b, 0), FSDP_ERR_COMM);
    assert_int_equal(n, 2);
    host_stream_close(a);
    host_stream_close(b);
}

/* When a stream that has failed is done, the work that it was ordered after is
 * done, too. */
UNIT_TEST(test_failed_stream_still_waits)
{
    struct host_stream *a = open_stream();
    struct host_stream *b = open_stream();
    struct gate gate = {0};
    int list[1];
    int n = 0;

    push_failure(b, FSDP_ERR_IO);
    push_gate(a, &gate);
    push_append(a, list, &n, 1);
    assert_int_equal(host_stream_order(b, a, 0), FSDP_OK);
    while (!gate.reached) {
        sleep_ms(1);
    }
    gate.open = 1;
    assert_int_equal(host_stream_wait(b, 0), FSDP_ERR_IO);
    assert_int_equal(n, 1);
    host_stream_close(b);
    host_stream_close(a);
}

UNIT_TEST(test_argument_bound)
{
    unsigned char much[HOST_STREAM_ARGUMENT + 1] = {0};
    struct host_stream *s = open_stream();

    assert_int_equal(host_stream_push(s, fail_with, much, sizeof(much), 0),
                     FSDP_ERR_INVALID);
    assert_int_equal(host_stream_push(s, fail_with, much, sizeof(much) - 1, 0),
                     FSDP_OK);
    assert_int_equal(host_stream_wait(s, 0), FSDP_OK);
    host_stream_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_close_does_what_was_given),
        cmocka_unit_test(test_ticket),
        cmocka_unit_test(test_order_between_streams),
        cmocka_unit_test(test_order_by_ticket),
        cmocka_unit_test(test_close_before_the_wait),
        cmocka_unit_test(test_failure_sticks),
        cmocka_unit_test(test_failed_stream_still_waits),
        cmocka_unit_test(test_argument_bound),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * race_test.c - what orders accesses and what does not: streams, waits,
 * tickets, the host. The detector is given histories as calls.
 */
#include "run/witness/race_testing.h"
#include "testing/unit_testing.h"

/* ---- What orders ------------------------------------------------------- */

static void a_stream_is_in_order(void **state)
{
    struct race *r = *state;

    add(r, COMPUTE, A, B, C);
    add(r, COMPUTE, C, B, A);
    add(r, COMPUTE, A, C, B);
    assert_int_equal(r->found.count, 0);
}

static void streams_are_not(void **state)
{
    struct race *r = *state;

    gather(r, GATHER, A, B);
    add(r, COMPUTE, B, NULL, C); /* reads what is being written */
    assert_int_equal(r->found.count, 1);
    assert_string_equal(r->found.race[0].edge, "all-gather->compute");
    assert_int_equal(r->found.race[0].unit, 3);
    assert_string_equal(r->found.race[0].earlier.what, "all-gather");
    assert_string_equal(r->found.race[0].earlier.stream, "gather");
    assert_string_equal(r->found.race[0].later.what, "add");
    assert_string_equal(r->found.race[0].later.stream, "compute");
    assert_string_equal(r->found.race[0].later.point, "pre-forward");
    assert_int_equal(r->found.race[0].later.step, 2);
    assert_int_equal(r->found.race[0].later.module, 5);
}

static void reads_do_not_race(void **state)
{
    struct race *r = *state;

    add(r, COMPUTE, A, B, C);
    reduce_scatter(r, REDUCE, A, D);
    gather(r, GATHER, B, memory[4]);
    race_record(r, false, A, sizeof(A));
    assert_int_equal(r->found.count, 0);
}

static void a_write_races_with_reads_and_writes(void **state)
{
    struct race *r = *state;

    add(r, COMPUTE, A, NULL, B);
    add(r, GATHER, C, NULL, A); /* over what is being read */
    assert_int_equal(r->found.count, 1);
    add(r, REDUCE, C, NULL, B); /* over what is being written */
    assert_int_equal(r->found.count, 2);
}

static void a_wait_orders_what_came_before(void **state)
{
    struct race *r = *state;

    gather(r, GATHER, A, B);
    race_wait(r, COMPUTE, GATHER, 0);
    add(r, COMPUTE, B, NULL, C);
    assert_int_equal(r->found.count, 0);
    gather(r, GATHER, A, D); /* behind the wait */
    add(r, COMPUTE, D, NULL, C);
    assert_int_equal(r->found.count, 1);
}

static void a_wait_has_a_direction(void **state)
{
    struct race *r = *state;

    gather(r, GATHER, A, B);
    race_wait(r, GATHER, COMPUTE, 0);
    add(r, COMPUTE, B, NULL, C);
    assert_int_equal(r->found.count, 1);
}

static void a_ticket_orders_what_it_stands_for(void **state)
{
    struct race *r = *state;
    uint64_t first;
    uint64_t second;

    gather(r, GATHER, A, B);
    first = mark(r, GATHER);
    gather(r, GATHER, A, C);
    second = mark(r, GATHER);
    gather(r, GATHER, A, D);
    race_wait(r, COMPUTE, GATHER, first);
    add(r, COMPUTE, B, NULL, memory[4]);
    assert_int_equal(r->found.count, 0);
    add(r, COMPUTE, C, NULL, memory[4]);
    assert_int_equal(r->found.count, 1);
    race_wait(r, COMPUTE, GATHER, second);
    add(r, COMPUTE, C, NULL, memory[4]);
    assert_int_equal(r->found.count, 1);
    add(r, COMPUTE, D, NULL, memory[4]);
    assert_int_equal(r->found.count, 2);
}

/* A stream that was given nothing more has the same ticket. */
static void the_same_ticket_twice(void **state)
{
    struct race *r = *state;

    gather(r, GATHER, A, B);
    race_mark(r, GATHER, 7);
    race_mark(r, GATHER, 7);
    race_wait(r, COMPUTE, GATHER, 7);
    add(r, COMPUTE, B, NULL, C);
    assert_int_equal(r->found.count, 0);
}

/* Among many tickets the right one is found, also when the table has grown
 * and lost those that the host knows. */
static void many_tickets(void **state)
{
    struct race *r = *state;
    uint64_t ticket[100];

    for (uint32_t i = 0; i < 100; i++) {
        gather(r, GATHER, A, memory[1 + i % 3]);
        ticket[i] = mark(r, GATHER);
        if (i == 40) {
            race_wait(r, NULL, GATHER, ticket[30]);
        }
    }
    race_wait(r, COMPUTE, GATHER, ticket[20]); /* nothing new */
    add(r, COMPUTE, memory[1 + 97 % 3], NULL, memory[5]);
    assert_int_equal(r->found.count, 1);
    race_wait(r, COMPUTE, GATHER, ticket[98]);
    add(r, COMPUTE, memory[1 + 98 % 3], NULL, memory[5]);
    add(r, COMPUTE, memory[1 + 97 % 3], NULL, memory[5]);
    assert_int_equal(r->found.count, 1);
    add(r, COMPUTE, memory[1 + 99 % 3], NULL, memory[5]);
    assert_int_equal(r->found.count, 2);
}

static void order_goes_through_others(void **state)
{
    struct race *r = *state;

    gather(r, GATHER, A, B);
    race_wait(r, REDUCE, GATHER, 0);
    race_wait(r, COMPUTE, REDUCE, 0);
    add(r, COMPUTE, B, NULL, C);
    assert_int_equal(r->found.count, 0);
}

/* A ticket covers what its stream had waited for when it was issued. */
static void a_ticket_knows_of_waits(void **state)
{
    struct race *r = *state;
    uint64_t before;
    uint64_t behind;

    (void)mark(r, REDUCE);
    gather(r, GATHER, A, B);
    add(r, REDUCE, C, NULL, C);
    before = mark(r, REDUCE);
    race_wait(r, REDUCE, GATHER, 0);
    add(r, REDUCE, C, NULL, C);
    behind = mark(r, REDUCE);
    race_wait(r, COMPUTE, REDUCE, before);
    add(r, COMPUTE, B, NULL, D);
    assert_int_equal(r->found.count, 1);
    race_wait(r, COMPUTE, REDUCE, behind);
    add(r, COMPUTE, B, NULL, D);
    assert_int_equal(r->found.count, 1);
}

/* ---- The host ---------------------------------------------------------- */

static void the_host_knows_what_it_waited_for(void **state)
{
    struct race *r = *state;
    uint64_t ticket;

    add(r, COMPUTE, A, NULL, B);
    ticket = mark(r, COMPUTE);
    add(r, COMPUTE, A, NULL, C);
    race_record(r, false, B, sizeof(B));
    assert_int_equal(r->found.count, 1);
    assert_string_equal(r->found.race[0].edge, "compute->host");
    race_wait(r, NULL, COMPUTE, ticket);
    race_record(r, false, B, sizeof(B));
    assert_int_equal(r->found.count, 1);
    race_record(r, false, C, sizeof(C));
    assert_int_equal(r->found.count, 2);
    race_sync(r, COMPUTE);
    race_record(r, false, C, sizeof(C));
    assert_int_equal(r->found.count, 2);
}

static void sync_of_one_stream_is_not_of_all(void **state)
{
    struct race *r = *state;

    add(r, COMPUTE, A, NULL, B);
    gather(r, GATHER, A, C);
    race_sync(r, COMPUTE);
    race_copy(r, NULL, D, C, sizeof(C));
    assert_int_equal(r->found.count, 1);
    race_sync(r, NULL);
    race_copy(r, NULL, D, C, sizeof(C));
    assert_int_equal(r->found.count, 1);
}

/* What is given to a stream comes after all that the host knows. */
static void streams_are_behind_the_host(void **state)
{
    struct race *r = *state;

    add(r, COMPUTE, A, NULL, B);
    gather(r, GATHER, B, C);
    assert_int_equal(r->found.count, 1);
    race_sync(r, NULL);
    reduce_scatter(r, REDUCE, C, B);
    assert_int_equal(r->found.count, 1);
}

static void the_host_reads_what_a_stream_will_write(void **state)
{
    struct race *r = *state;

    race_copy(r, NULL, A, B, sizeof(A)); /* finished on return */
    add(r, COMPUTE, A, NULL, B);
    assert_int_equal(r->found.count, 0);
    race_copy(r, NULL, A, C, sizeof(A)); /* over what is being read */
    assert_int_equal(r->found.count, 1);
}

/* A look of the recorder behind the model's stream orders nothing. */
static void the_recorder_stands_behind_compute(void **state)
{
    struct race *r = *state;

    add(r, COMPUTE, A, NULL, B);
    race_record(r, true, B, sizeof(B));
    assert_int_equal(r->found.count, 0);
    gather(r, GATHER, A, B);
    assert_int_equal(r->found.count, 1);
    race_record(r, true, B, sizeof(B));
    assert_int_equal(r->found.count, 2);
    assert_string_equal(r->found.race[1].edge, "all-gather->compute");
}

static void without_streams_there_is_nothing(void **state)
{
    struct race *r = *state;

    add(r, NULL, A, B, C);
    gather(r, NULL, C, A);
    race_value(r, NULL, false, 0, A, sizeof(A));
    race_free(r, A, sizeof(A));
    assert_int_equal(r->found.count, 0);
    assert_int_equal(r->written.n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_stream_is_in_order),
        TEST(streams_are_not),
        TEST(reads_do_not_race),
        TEST(a_write_races_with_reads_and_writes),
        TEST(a_wait_orders_what_came_before),
        TEST(a_wait_has_a_direction),
        TEST(a_ticket_orders_what_it_stands_for),
        TEST(the_same_ticket_twice),
        TEST(many_tickets),
        TEST(order_goes_through_others),
        TEST(a_ticket_knows_of_waits),
        TEST(the_host_knows_what_it_waited_for),
        TEST(sync_of_one_stream_is_not_of_all),
        TEST(streams_are_behind_the_host),
        TEST(the_host_reads_what_a_stream_will_write),
        TEST(the_recorder_stands_behind_compute),
        TEST(without_streams_there_is_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}

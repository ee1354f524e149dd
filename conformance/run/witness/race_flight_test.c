/* SPDX-License-Identifier: Apache-2.0 */
/*
 * race_flight_test.c - when collectives are issued, what they come after, and
 * what comes after them: the calls are made, and the positions asked for.
 */
#include "run/witness/race_testing.h"
#include "testing/unit_testing.h"

enum {
    STEP = 3
};

static int make_watched(void **state)
{
    int status = make(state);

    race_watch_flights(*state, STEP);
    return status;
}

#define WATCHED(NAME) cmocka_unit_test_setup_teardown(NAME, make_watched, drop)

static void assert_flight(const struct race *r, uint32_t i, uint32_t issued,
                          uint32_t behind, uint32_t awaited)
{
    assert_true(i < r->flights.n);
    assert_int_equal(r->flights.flight[i].issued, issued);
    assert_int_equal(r->flights.flight[i].behind, behind);
    assert_int_equal(r->flights.flight[i].awaited, awaited);
}

static void other_steps_are_not_noted(void **state)
{
    struct race *r = *state;

    race_place(r, STEP - 1, FSDP_BEGIN, 0);
    gather(r, GATHER, A, B);
    race_place(r, STEP, FSDP_BEGIN, 0);
    race_flight_end(r);
    gather(r, GATHER, A, B);
    assert_int_equal(r->flights.n, 0);
}

static void positions_count_calls(void **state)
{
    struct race *r = *state;

    race_place(r, STEP, FSDP_BEGIN, 0);
    race_place(r, STEP, FSDP_PRE_FORWARD, 0);
    gather(r, GATHER, A, B);
    race_wait(r, COMPUTE, GATHER, 0);
    race_place(r, STEP, FSDP_POST_FORWARD, 0);
    race_place(r, STEP, RACE_AT_PIECES, 0); /* is no position */
    gather(r, GATHER, A, C);
    race_place(r, STEP, RACE_AT_STEP, 0);
    gather(r, GATHER, A, C);
    race_flight_end(r);
    assert_int_equal(r->flights.n, 3);
    assert_flight(r, 0, 1, 0, 1);
    assert_flight(r, 1, 2, 0, RECORD_NO_POSITION);
    assert_flight(r, 2, 3, 0, RECORD_NO_POSITION);
    assert_int_equal(r->flights.flight[0].kind, FSDP_ALL_GATHER);
    assert_int_equal(r->flights.flight[0].unit, 3);
    assert_int_equal(r->flights.flight[0].on_stream, 1);
}

/* The second collective comes after the work of position 1, the first does
 * not. */
static void compute_before_and_behind(void **state)
{
    struct race *r = *state;
    uint64_t early;

    race_place(r, STEP, FSDP_BEGIN, 0);
    add(r, COMPUTE, C, NULL, D);
    early = mark(r, COMPUTE);
    race_place(r, STEP, FSDP_PRE_FORWARD, 0);
    add(r, COMPUTE, C, NULL, D);
    race_wait(r, GATHER, COMPUTE, early);
    gather(r, GATHER, A, B);
    race_place(r, STEP, FSDP_POST_FORWARD, 0);
    race_wait(r, GATHER, COMPUTE, 0);
    gather(r, GATHER, A, memory[4]);
    race_place(r, STEP, FSDP_PRE_FORWARD, 1);
    race_wait(r, COMPUTE, GATHER, 0);
    race_place(r, STEP, FSDP_POST_FORWARD, 1);
    race_flight_end(r);
    assert_flight(r, 0, 1, 1, 3);
    assert_flight(r, 1, 2, 2, 3);
}

static void on_the_host(void **state)
{
    struct race *r = *state;

    race_place(r, STEP, FSDP_BEGIN, 0);
    add(r, COMPUTE, C, NULL, D);
    gather(r, NULL, A, B);
    race_sync(r, COMPUTE);
    gather(r, NULL, A, B);
    race_flight_end(r);
    assert_flight(r, 0, 0, 0, 0);
    assert_flight(r, 1, 0, 1, 0);
    assert_int_equal(r->flights.flight[1].on_stream, 0);
}

/* The model's stream comes after what the host has waited for. */
static void the_host_waits(void **state)
{
    struct race *r = *state;

    race_place(r, STEP, FSDP_BEGIN, 0);
    gather(r, GATHER, A, B);
    race_place(r, STEP, FSDP_PRE_FORWARD, 0);
    race_sync(r, NULL);
    race_place(r, STEP, FSDP_POST_FORWARD, 0);
    race_flight_end(r);
    assert_flight(r, 0, 0, 0, 1);
}

static void a_second_life(void **state)
{
    struct race *r = *state;

    for (uint32_t life = 0; life < 2; life++) {
        race_place(r, 0, FSDP_BEGIN, 0);
        race_place(r, STEP, FSDP_BEGIN, 0);
        gather(r, GATHER, A, B);
        race_flight_end(r);
    }
    assert_int_equal(r->flights.n, 1);
    assert_flight(r, 0, 0, 0, RECORD_NO_POSITION);
}

static void many_positions(void **state)
{
    struct race *r = *state;

    race_place(r, STEP, FSDP_BEGIN, 0);
    for (uint32_t i = 1; i <= 1000; i++) {
        race_place(r, STEP, FSDP_PRE_FORWARD, i);
        add(r, COMPUTE, C, NULL, D);
        race_wait(r, GATHER, COMPUTE, 0);
        gather(r, GATHER, A, B);
    }
    race_wait(r, COMPUTE, GATHER, 0);
    race_flight_end(r);
    assert_int_equal(r->flights.n, 1000);
    assert_flight(r, 0, 1, 2, 1000);
    assert_flight(r, 999, 1000, 1001, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHED(other_steps_are_not_noted),
        WATCHED(positions_count_calls),
        WATCHED(compute_before_and_behind),
        WATCHED(on_the_host),
        WATCHED(the_host_waits),
        WATCHED(a_second_life),
        WATCHED(many_positions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}

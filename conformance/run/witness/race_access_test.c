/* SPDX-License-Identifier: Apache-2.0 */
/*
 * race_access_test.c - what touches which bytes: values, storage, streams that
 * come and go, parts of ranges, long runs.
 */
#include "run/witness/race_testing.h"
#include "testing/unit_testing.h"

#include <stdlib.h>

/* ---- Values, storage, streams ------------------------------------------ */

static void an_early_death(void **state)
{
    struct race *r = *state;

    reduce_scatter(r, REDUCE, A, B);
    race_value(r, COMPUTE, false, 3, A, sizeof(A));
    assert_int_equal(r->found.count, 1);
    assert_string_equal(r->found.race[0].edge, "reduce-scatter->dead");
    race_wait(r, COMPUTE, REDUCE, 0);
    race_value(r, COMPUTE, false, 3, B, sizeof(B));
    assert_int_equal(r->found.count, 1);
}

static void an_early_new_life(void **state)
{
    struct race *r = *state;
    uint64_t died;

    add(r, COMPUTE, A, NULL, B);
    race_value(r, COMPUTE, false, 1, A, sizeof(A));
    died = mark(r, COMPUTE);
    race_value(r, GATHER, true, 2, A, sizeof(A));
    assert_int_equal(r->found.count, 1);
    assert_string_equal(r->found.race[0].edge, "dead->reuse");
    assert_int_equal(r->found.race[0].unit, 2);
    race_wait(r, GATHER, COMPUTE, died);
    race_value(r, GATHER, true, 2, A, sizeof(A));
    gather(r, GATHER, C, A);
    assert_int_equal(r->found.count, 1);
}

static void storage_is_taken_away(void **state)
{
    struct race *r = *state;

    add(r, COMPUTE, A, NULL, B);
    race_free(r, A, sizeof(A));
    assert_int_equal(r->found.count, 1);
    /* Allocated anew: what was before it is not asked about again. */
    gather(r, GATHER, C, A);
    assert_int_equal(r->found.count, 1);
    race_sync(r, NULL);
    race_free(r, A, sizeof(A));
    race_free(r, B, sizeof(B));
    assert_int_equal(r->found.count, 1);
}

static void a_closed_stream_has_finished(void **state)
{
    struct race *r = *state;

    gather(r, GATHER, A, B);
    race_stream_close(r, GATHER);
    add(r, COMPUTE, B, NULL, C);
    assert_int_equal(r->found.count, 0);
    /* Another one in its place begins anew. */
    race_stream_open(r, stream(7), "another");
    gather(r, stream(7), A, D);
    add(r, COMPUTE, D, NULL, C);
    assert_int_equal(r->found.count, 1);
    assert_string_equal(r->found.race[0].earlier.stream, "another");
}

static void a_stream_that_nobody_opened(void **state)
{
    struct race *r = *state;

    gather(r, stream(9), A, B);
    add(r, COMPUTE, B, NULL, C);
    assert_int_equal(r->found.count, 1);
}

static void more_streams_than_are_followed(void **state)
{
    struct race *r = *state;

    for (uint32_t i = 3; i < RACE_STREAMS; i++) {
        race_stream_open(r, stream(i), NULL);
    }
    gather(r, stream(RACE_STREAMS - 1), A, B);
    add(r, COMPUTE, B, NULL, C);
    assert_int_equal(r->found.count, 1);
    assert_int_equal(r->found.unfollowed, 0);
    race_stream_open(r, stream(RACE_STREAMS), "one more");
    assert_int_equal(r->found.unfollowed, 1);
    add(r, COMPUTE, B, NULL, C); /* no guess */
    assert_int_equal(r->found.count, 1);
}

/* ---- Ranges ------------------------------------------------------------ */

static void parts_of_ranges(void **state)
{
    struct race *r = *state;

    add(r, COMPUTE, C, NULL, A);
    race_copy(r, GATHER, D, A + N - 1, 4); /* its last element */
    assert_int_equal(r->found.count, 1);
    race_copy(r, GATHER, D, A + N, 4); /* behind it, of B */
    assert_int_equal(r->found.count, 1);
    race_copy(r, COMPUTE, A + 8, C, 16); /* splits what was written */
    race_wait(r, REDUCE, COMPUTE, 0);
    race_copy(r, COMPUTE, A + 16, C, 16);
    race_copy(r, REDUCE, memory[5], A, 64); /* up to element 15 */
    assert_int_equal(r->found.count, 1);
    race_copy(r, REDUCE, memory[5], A + 19, 4);
    assert_int_equal(r->found.count, 2);
    race_copy(r, REDUCE, memory[5], A + 20, 4);
    assert_int_equal(r->found.count, 2);
}

static void empty_ranges(void **state)
{
    struct race *r = *state;

    add(r, COMPUTE, C, NULL, A);
    race_copy(r, GATHER, A, B, 0);
    race_value(r, GATHER, true, 0, A, 0);
    race_free(r, A, 0);
    race_record(r, false, NULL, 8);
    race_record(r, false, A, UINT64_MAX);
    assert_int_equal(r->found.count, 0);
}

/* Columns of one matrix on two streams: rows with something between them. */
static void rows_that_interleave(void **state)
{
    struct race *r = *state;
    struct fsdp_op op = {.size = sizeof(op),
                         .kind = FSDP_OP_COPY_2D,
                         .unit = FSDP_NO_UNIT,
                         .dim = {4, 16, 32, 16},
                         .n_in = 1,
                         .n_out = 1,
                         .in = {{B, 64}},
                         .out = {{A, 112}}};

    race_operator(r, COMPUTE, &op);
    op.out[0].p = A + 4;
    race_operator(r, GATHER, &op);
    assert_int_equal(r->found.count, 0);
    op.out[0].p = A + 3;
    race_operator(r, REDUCE, &op);
    assert_true(r->found.count > 0);
}

/* A collective in place, and one operator in place, race with nobody. */
static void in_place(void **state)
{
    struct race *r = *state;

    gather(r, GATHER, A, A);
    add(r, COMPUTE, B, C, B);
    assert_int_equal(r->found.count, 0);
    add(r, REDUCE, C, NULL, D);
    add(r, REDUCE, D, B, D);
    assert_int_equal(r->found.count, 1);
}

/* Only the root's input is read. */
static void broadcasts(void **state)
{
    struct race *r = *state;
    struct fsdp_collective c = {.size = sizeof(c),
                                .kind = FSDP_BROADCAST,
                                .dtype = FSDP_DTYPE_F32,
                                .root = 1,
                                .n = N,
                                .in = A,
                                .out = B};

    add(r, COMPUTE, C, NULL, A);
    race_collective(r, GATHER, 2, 0, &c);
    assert_int_equal(r->found.count, 0);
    race_collective(r, GATHER, 2, 1, &c);
    assert_int_equal(r->found.count, 1);
}

/* ---- Long runs --------------------------------------------------------- */

/* Tables do not grow with the steps, and nothing is found that is not. */
static void a_long_run_stays_small(void **state)
{
    struct race *r = *state;
    float *large = calloc(1 << 16, sizeof(*large));
    uint32_t most;

    assert_non_null(large);
    for (uint32_t step = 0; step < 200; step++) {
        for (uint32_t i = 0; i < 100; i++) {
            float *at = large + (step * 321 + i * 64) % ((1 << 16) - 64);
            gather(r, GATHER, A, at);
            race_wait(r, COMPUTE, GATHER, mark(r, GATHER));
            add(r, COMPUTE, at, NULL, B);
            race_wait(r, GATHER, COMPUTE, 0);
        }
        race_sync(r, NULL);
    }
    most = r->written.n + r->stream[0].read.n + r->stream[1].read.n;
    assert_int_equal(r->found.count, 0);
    assert_true(most <= 2048);
    assert_true(r->stream[1].ticket_room <= 512);
    add(r, COMPUTE, A, NULL, large);
    gather(r, REDUCE, large, C);
    assert_int_equal(r->found.count, 1);
    free(large);
}

/* All races are counted and a few described: the first of each edge and
 * kind. */
static void many_races(void **state)
{
    struct race *r = *state;

    for (uint32_t i = 0; i < 10; i++) {
        add(r, COMPUTE, C, NULL, A);
        reduce_scatter(r, REDUCE, A, B);
    }
    assert_int_equal(r->found.count, 19);
    assert_int_equal(r->found.n, 2);
    assert_string_equal(r->found.race[0].edge, "compute->reduce-scatter");
    assert_string_equal(r->found.race[1].edge, "reduce-scatter->compute");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_early_death),
        TEST(an_early_new_life),
        TEST(storage_is_taken_away),
        TEST(a_closed_stream_has_finished),
        TEST(a_stream_that_nobody_opened),
        TEST(more_streams_than_are_followed),
        TEST(parts_of_ranges),
        TEST(empty_ranges),
        TEST(rows_that_interleave),
        TEST(in_place),
        TEST(broadcasts),
        TEST(a_long_run_stays_small),
        TEST(many_races),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}

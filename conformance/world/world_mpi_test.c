/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world_mpi_test.c - the same collectives between ranks of mpirun.
 *
 *     mpirun -n K world_mpi_test MODE
 *
 * MODE says how the last world ends, as none can follow on an aborted one:
 *   fails     rank 1 fails while the others wait
 *   leaves    rank 1 returns while the others wait
 *   is-slow   rank 1 comes too late for the others' patience
 *   hangs     rank 1 never comes: the program ends with 70 (not by ctest)
 */
#include "world_body_testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "testing/unit_testing.h"

enum {
    PATIENT_MS = 20000,
    /* Long enough for a loaded machine's ranks to reach the collective that
     * comes before the slow one. */
    HASTY_MS = 3000,
    CULPRIT = 1
};

static const char *const dims[] = {"replicate", "shard"};
static uint32_t self;
static uint32_t world;
static const char *mode;

static struct world_result run_on(uint32_t rows, uint32_t timeout_ms,
                                  int (*body)(void *, struct world_rank *))
{
    uint32_t extent[] = {rows, world / rows};
    struct fsdp_mesh mesh = {
        .size = sizeof(mesh), .n_dims = 2, .name = dims, .extent = extent};
    struct world_result result[WORLD_MAX_RANKS];
    struct fsdp_error error = {0};
    int status =
        world_run(WORLD_MPI, &mesh, timeout_ms, body, &mesh, result, &error);
    if (status != FSDP_OK) {
        fail_msg("world_run: %d, %s", status, error.message);
    }
    return result[self];
}

static void expect_well(uint32_t rows, int (*body)(void *, struct world_rank *))
{
    struct world_result result = run_on(rows, PATIENT_MS, body);
    const char *verdict = world_body_verdict(&result, 1);
    if (verdict[0] != '\0') {
        fail_msg("rank %u, %u rows: %s", self, rows, verdict);
    }
}

UNIT_TEST(collectives_match_their_definition)
{
    expect_well(1, world_body_collectives);
    expect_well(world, world_body_collectives);
    if (world % 2 == 0) {
        expect_well(2, world_body_collectives);
    }
}

UNIT_TEST(exchange_gathers)
{
    expect_well(1, world_body_exchange);
}

static int disagrees(void *context, struct world_rank *rank)
{
    float in[8] = {0};
    float out[WORLD_MAX_RANKS] = {0};
    (void)context;
    uint64_t n = rank->rank == CULPRIT ? 2 : 1;
    int status = world_body_run(rank, FSDP_ALL_GATHER, n, in, out);
    if (status != FSDP_ERR_MISMATCH) {
        return FSDP_ERR_INTERNAL;
    }
    /* The mismatch broke nothing. */
    return world_body_run(rank, FSDP_ALL_GATHER, 1, in, out);
}

UNIT_TEST(disagreement_is_told_to_all)
{
    struct world_result result = run_on(1, PATIENT_MS, disagrees);
    assert_int_equal(result.end, WORLD_RETURNED);
    assert_int_equal(result.status, FSDP_OK);
    assert_int_equal(result.n_collectives, 2);
    assert_int_equal(result.error.status, FSDP_ERR_MISMATCH);
    assert_non_null(strstr(result.error.message, "rank 0: all-gather n 1 "));
    assert_non_null(strstr(result.error.message, "rank 1: all-gather n 2 "));
}

static int ends_badly(void *context, struct world_rank *rank)
{
    float x = 1;
    float sum = 0;
    (void)context;
    FSDP_TRY(world_body_run(rank, FSDP_ALL_REDUCE, 1, &x, &sum));
    if (rank->rank == CULPRIT) {
        if (strcmp(mode, "hangs") == 0) {
            while (pause() < 0) {
            }
        }
        if (strcmp(mode, "is-slow") == 0) {
            world_body_dawdle(rank);
        }
        return strcmp(mode, "leaves") == 0 ? FSDP_OK : FSDP_ERR_NOMEM;
    }
    return world_body_run(rank, FSDP_BARRIER, 0, NULL, NULL);
}

UNIT_TEST(the_others_learn_of_it)
{
    bool leaves = strcmp(mode, "leaves") == 0;
    bool fails = strcmp(mode, "fails") == 0;

    struct world_result result =
        run_on(1, leaves || fails ? PATIENT_MS : HASTY_MS, ends_badly);

    if (self == CULPRIT) {
        assert_int_equal(result.end, WORLD_RETURNED);
        assert_int_equal(result.status, leaves ? FSDP_OK : FSDP_ERR_NOMEM);
        assert_int_equal(result.n_collectives, 1);
        assert_int_equal(result.in_collective, 0);
    } else if (fails) {
        assert_int_equal(result.status, FSDP_ERR_ABORTED);
        assert_int_equal(result.in_collective, 1);
    } else if (result.status != FSDP_ERR_ABORTED) {
        /* The first rank to find out aborts the others. */
        assert_int_equal(result.status,
                         leaves ? FSDP_ERR_MISMATCH : FSDP_ERR_TIMEOUT);
        assert_int_equal(result.end, leaves ? WORLD_RETURNED : WORLD_TIMED_OUT);
    }
    if (self != CULPRIT) {
        assert_int_equal(result.n_collectives, 2);
        assert_int_equal(result.last_kind, FSDP_BARRIER);
    }
}

UNIT_TEST(no_world_follows_an_aborted_one)
{
    uint32_t extent[] = {1, world};
    struct fsdp_mesh mesh = {
        .size = sizeof(mesh), .n_dims = 2, .name = dims, .extent = extent};
    struct world_result result[WORLD_MAX_RANKS];

    int status =
        world_run(WORLD_MPI, &mesh, PATIENT_MS, ends_badly, NULL, result, NULL);

    assert_int_equal(status, FSDP_ERR_ABORTED);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(collectives_match_their_definition),
        cmocka_unit_test(exchange_gathers),
        cmocka_unit_test(disagreement_is_told_to_all),
        cmocka_unit_test(the_others_learn_of_it),
        cmocka_unit_test(no_world_follows_an_aborted_one),
    };
    struct fsdp_error error = {0};
    mode = argc == 2 ? argv[1] : "";
    if (world_mpi_open(&self, &world, &error) != FSDP_OK || world < 2 ||
        mode[0] == '\0') {
        fprintf(stderr, "mpirun -n 2.. world_mpi_test MODE; %s\n",
                error.message);
        return 1;
    }
    int failed = cmocka_run_group_tests(tests, NULL, NULL) != 0;
    world_mpi_close();
    return failed;
}

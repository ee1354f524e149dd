/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world_test.c - collectives between processes and between threads, and the
 * errors of ranks that do not agree about one.
 */
#include "world_body_testing.h"
#include "world_fold.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "testing/unit_testing.h"

#include <fsdp/arith/cast.h>

enum {
    TIMEOUT_MS = 20000,
    N_KINDS = 3,
    K = 4, /* ranks, of which one disagrees */
    CULPRIT = 1
};

static const char *const dims[] = {"replicate", "shard"};
static const uint32_t kinds[] = {WORLD_LOCAL, WORLD_THREADS, WORLD_CARRIED};

static struct fsdp_mesh mesh_of(const uint32_t *extent)
{
    return (struct fsdp_mesh){.size = sizeof(struct fsdp_mesh),
                              .n_dims = 2,
                              .name = dims,
                              .extent = extent};
}

static void expect_all_well(uint32_t r, uint32_t s,
                            int (*body)(void *, struct world_rank *))
{
    uint32_t extent[] = {r, s};
    struct fsdp_mesh mesh = mesh_of(extent);
    for (uint32_t k = 0; k < N_KINDS; k++) {
        struct world_result result[WORLD_MAX_RANKS];
        struct fsdp_error error = {0};
        int status =
            world_run(kinds[k], &mesh, TIMEOUT_MS, body, &mesh, result, &error);
        assert_int_equal(status, FSDP_OK);
        const char *verdict = world_body_verdict(result, r * s);
        if (verdict[0] != '\0') {
            fail_msg("mesh %u x %u, world %u: %s", r, s, kinds[k], verdict);
        }
    }
}

UNIT_TEST(collectives_match_their_definition)
{
    static const uint32_t worlds[] = {1, 2, 3, 4, 7, 8};

    for (uint32_t i = 0; i < 6; i++) {
        expect_all_well(1, worlds[i], world_body_collectives);
        expect_all_well(worlds[i], 1, world_body_collectives);
    }
    expect_all_well(2, 2, world_body_collectives);
    expect_all_well(2, 3, world_body_collectives);
}

UNIT_TEST(exchange_gathers)
{
    expect_all_well(1, 1, world_body_exchange);
    expect_all_well(2, 2, world_body_exchange);
    expect_all_well(1, 7, world_body_exchange);
}

/* Groups of one dimension go their own pace: group g does g times the work,
 * and then the other dimension makes them meet. */
static int uneven_groups(void *context, struct world_rank *rank)
{
    uint32_t row = rank->rank / 2;
    (void)context;
    struct fsdp_collective c = {.size = sizeof(c),
                                .kind = FSDP_ALL_REDUCE,
                                .dtype = FSDP_DTYPE_F32,
                                .n = 1};
    float got = 0;
    for (uint32_t round = 0; round < 20; round++) {
        float mine = (float)rank->rank;
        c.in = &mine;
        c.out = &got;
        c.dim = FSDP_DIM_SHARD;
        for (uint32_t i = 0; i <= row * 10; i++) {
            FSDP_TRY(rank->comm.run(rank->comm.self, NULL, &c));
            if (!(got == (float)(4 * row + 1))) {
                return FSDP_ERR_INTERNAL;
            }
        }
        c.dim = FSDP_DIM_REPLICATE;
        FSDP_TRY(rank->comm.run(rank->comm.self, NULL, &c));
        if (!(got == (float)(rank->rank % 2 == 0 ? 6 : 9))) {
            return FSDP_ERR_INTERNAL;
        }
    }
    return FSDP_OK;
}

UNIT_TEST(groups_operate_at_the_same_time)
{
    expect_all_well(3, 2, uneven_groups);
}

/* 8 and 2 byte elements move as they are; integers are not reduced. */
static int other_dtypes(void *context, struct world_rank *rank)
{
    int64_t mine = -5 - (int64_t)rank->rank;
    int64_t all[4] = {0};
    uint16_t half = 0x7e00;
    uint16_t got = 0;
    (void)context;
    struct fsdp_collective c = {.size = sizeof(c),
                                .kind = FSDP_ALL_GATHER,
                                .dim = FSDP_DIM_WORLD,
                                .dtype = FSDP_DTYPE_I64,
                                .n = 1,
                                .in = &mine,
                                .out = all};
    FSDP_TRY(rank->comm.run(rank->comm.self, NULL, &c));
    for (int64_t r = 0; r < 4; r++) {
        if (all[r] != -5 - r) {
            return FSDP_ERR_INTERNAL;
        }
    }
    c.kind = FSDP_BROADCAST;
    c.dtype = FSDP_DTYPE_F16;
    c.root = 2;
    c.in = &half;
    c.out = &got;
    FSDP_TRY(rank->comm.run(rank->comm.self, NULL, &c));
    if (got != 0x7e00) {
        return FSDP_ERR_INTERNAL;
    }
    c.kind = FSDP_ALL_REDUCE;
    c.root = 0;
    c.dtype = FSDP_DTYPE_I32;
    int status = rank->comm.run(rank->comm.self, NULL, &c);
    if (status != FSDP_ERR_UNSUPPORTED) {
        return FSDP_ERR_INTERNAL;
    }
    *rank->error = (struct fsdp_error){0};
    c.dtype = FSDP_DTYPE_F32;
    c.sum_dtype = FSDP_DTYPE_BF16;
    status = rank->comm.run(rank->comm.self, NULL, &c);
    return status == FSDP_ERR_INVALID ? FSDP_OK : FSDP_ERR_INTERNAL;
}

enum {
    HALVES = 70001, /* of a rank: several turns, the last one partial */
    HALVES_RANKS = 3,
};

/* Values of a rank, whose sums depend on order and rounding. */
static void fill_halves(uint32_t dtype, uint32_t rank, uint16_t *x)
{
    static const float scale[] = {256, 1, -256, 0.5f, 3};

    for (uint64_t i = 0; i < (uint64_t)HALVES * HALVES_RANKS; i++) {
        fsdp_store(dtype, x, i,
                   scale[(i + rank) % 5] *
                       (float)(1 + (i * 7 + (uint64_t)rank * 3) % 11));
    }
}

/* Compares both kinds of reduction with world_fold. */
static int try_halves(struct world_rank *rank, struct fsdp_collective c,
                      uint16_t *const *x, uint16_t *got, uint16_t *want)
{
    struct world_sum how = {c.fold, rank->rank, c.dtype, fsdp_sum_dtype(&c)};
    const void *in[HALVES_RANKS];

    c.n = c.kind == FSDP_ALL_REDUCE ? (uint64_t)HALVES * HALVES_RANKS : HALVES;
    c.in = x[rank->rank];
    c.out = got;
    FSDP_TRY(rank->comm.run(rank->comm.self, NULL, &c));
    for (uint32_t owner = 0; owner < HALVES_RANKS; owner++) {
        for (uint32_t r = 0; r < HALVES_RANKS; r++) {
            in[r] = x[r] + (uint64_t)owner * HALVES;
        }
        how.owner = owner;
        world_fold(&how, in, HALVES_RANKS, HALVES,
                   want + (uint64_t)owner * HALVES);
    }
    want += c.kind == FSDP_ALL_REDUCE ? 0 : (uint64_t)rank->rank * HALVES;
    return memcmp(got, want, c.n * sizeof(*got)) == 0 ? FSDP_OK
                                                      : FSDP_ERR_INTERNAL;
}

static int reduced_halves(void *context, struct world_rank *rank)
{
    uint64_t bytes = (uint64_t)2 * HALVES * HALVES_RANKS;
    uint16_t *memory[HALVES_RANKS + 2];
    int status = FSDP_OK;

    (void)context;
    for (int i = 0; i < HALVES_RANKS + 2; i++) {
        memory[i] = malloc(bytes);
        if (!memory[i]) {
            return FSDP_ERR_NOMEM; /* the process ends with it */
        }
    }
    for (uint32_t k = 0; k < 24 && status == FSDP_OK; k++) {
        struct fsdp_collective c = {
            .size = sizeof(c),
            .kind = k % 2 == 0 ? FSDP_ALL_REDUCE : FSDP_REDUCE_SCATTER,
            .dim = FSDP_DIM_WORLD,
            .dtype = k / 2 % 2 == 0 ? FSDP_DTYPE_BF16 : FSDP_DTYPE_F16,
            .sum_dtype = k / 4 % 2 == 0 ? FSDP_DTYPE_NONE : FSDP_DTYPE_F32,
            .fold = k / 8};

        for (uint32_t r = 0; r < HALVES_RANKS; r++) {
            fill_halves(c.dtype, r, memory[r]);
        }
        status = try_halves(rank, c, memory, memory[HALVES_RANKS],
                            memory[HALVES_RANKS + 1]);
    }
    for (int i = 0; i < HALVES_RANKS + 2; i++) {
        free(memory[i]);
    }
    return status;
}

UNIT_TEST(halves_are_reduced)
{
    expect_all_well(1, HALVES_RANKS, reduced_halves);
}

/* A caller that was built before sum_dtype; behind its struct lies garbage. */
static int shorter_struct(void *context, struct world_rank *rank)
{
    uint16_t one = 0x3f80;
    uint16_t got = 0;
    struct fsdp_collective c = {.size = FSDP_COLLECTIVE_LEAST,
                                .kind = FSDP_ALL_REDUCE,
                                .dim = FSDP_DIM_WORLD,
                                .dtype = FSDP_DTYPE_BF16,
                                .n = 1,
                                .in = &one,
                                .out = &got,
                                .sum_dtype = 0xeeeeeeee};
    (void)context;
    FSDP_TRY(rank->comm.run(rank->comm.self, NULL, &c));
    c.size--;
    return got == 0x4000 &&
                   rank->comm.run(rank->comm.self, NULL, &c) == FSDP_ERR_INVALID
               ? FSDP_OK
               : FSDP_ERR_INTERNAL;
}

UNIT_TEST(structs_grow_at_their_end)
{
    expect_all_well(1, 2, shorter_struct);
}

UNIT_TEST(other_dtypes_are_moved_but_not_reduced)
{
    expect_all_well(2, 2, other_dtypes);
}

/* Calls that no rank could answer are refused before anything is sent, so
 * the world goes on afterwards. */
static int bad_calls(void *context, struct world_rank *rank)
{
    float x[8] = {0};
    float y[8] = {0};
    (void)context;
    const struct fsdp_collective good = {.size = sizeof(good),
                                         .kind = FSDP_ALL_GATHER,
                                         .dim = FSDP_DIM_SHARD,
                                         .dtype = FSDP_DTYPE_F32,
                                         .n = 2,
                                         .in = x,
                                         .out = y};
    struct fsdp_collective bad[13];
    for (uint32_t i = 0; i < 13; i++) {
        bad[i] = good;
    }
    bad[0].size = 8;
    bad[1].kind = FSDP_N_COLLECTIVES;
    bad[2].dim = 2;
    bad[3].dtype = FSDP_DTYPE_NONE;
    bad[4].in = NULL;
    bad[5].out = NULL;
    bad[6].in = y + 1; /* neither apart nor its own part */
    bad[7].n = UINT64_MAX / 4;
    bad[8].kind = FSDP_REDUCE_SCATTER;
    bad[8].in = y;
    bad[9].kind = FSDP_ALL_REDUCE;
    bad[9].fold = 3;
    bad[10].kind = FSDP_BROADCAST;
    bad[10].root = 2;
    bad[11].kind = FSDP_BARRIER;
    bad[12].kind = FSDP_ALL_REDUCE;
    bad[12].in = y + 1;
    for (uint32_t i = 0; i < 13; i++) {
        *rank->error = (struct fsdp_error){0};
        int status = rank->comm.run(rank->comm.self, NULL, &bad[i]);
        if (status != FSDP_ERR_INVALID || rank->error->status != status) {
            rank->error->native = (int32_t)i;
            return FSDP_ERR_INTERNAL;
        }
    }
    return rank->comm.run(rank->comm.self, NULL, &good);
}

UNIT_TEST(bad_calls_are_refused)
{
    expect_all_well(2, 2, bad_calls);
}

static int nothing(void *context, struct world_rank *rank)
{
    (void)context;
    (void)rank;
    return FSDP_OK;
}

/* One rank wants its sums in float32. */
static int rounds_otherwise(struct world_rank *rank)
{
    uint16_t half = 0;
    struct fsdp_error first = *rank->error;
    struct fsdp_collective c = {
        .size = sizeof(c),
        .kind = FSDP_ALL_REDUCE,
        .dim = FSDP_DIM_WORLD,
        .dtype = FSDP_DTYPE_BF16,
        .n = 1,
        .in = &half,
        .out = &half,
        .sum_dtype = rank->rank == CULPRIT ? FSDP_DTYPE_F32 : FSDP_DTYPE_NONE};
    int status = rank->comm.run(rank->comm.self, NULL, &c);

    *rank->error = first;
    return status == FSDP_ERR_MISMATCH ? FSDP_OK : FSDP_ERR_INTERNAL;
}

static int disagrees(void *context, struct world_rank *rank)
{
    float in[8] = {0};
    float out[8] = {0};
    (void)context;
    uint64_t n = rank->rank == CULPRIT ? 2 : 1;
    int status = world_body_run(rank, FSDP_ALL_GATHER, n, in, out);
    if (status != FSDP_ERR_MISMATCH) {
        return FSDP_ERR_INTERNAL;
    }
    struct fsdp_error first = *rank->error;
    uint32_t kind =
        rank->rank == CULPRIT ? FSDP_BROADCAST : FSDP_REDUCE_SCATTER;
    status = world_body_run(rank, kind, 1, in, out);
    *rank->error = first;
    return status == FSDP_ERR_MISMATCH ? rounds_otherwise(rank)
                                       : FSDP_ERR_INTERNAL;
}

UNIT_TEST(disagreement_is_told_to_all)
{
    const uint32_t extent[] = {1, K};
    const struct fsdp_mesh mesh = mesh_of(extent);

    for (uint32_t k = 0; k < N_KINDS; k++) {
        struct world_result result[K];
        assert_int_equal(world_run(kinds[k], &mesh, TIMEOUT_MS, disagrees, NULL,
                                   result, NULL),
                         FSDP_OK);
        errno = 0;
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
        assert_int_equal(errno, ECHILD);
        assert_string_equal(world_body_verdict(result, K), "");
        for (uint32_t r = 0; r < K; r++) {
            const char *text = result[r].error.message;
            assert_int_equal(result[r].error.status, FSDP_ERR_MISMATCH);
            assert_int_equal(result[r].error.rank, r);
            assert_non_null(strstr(text, "rank 0: all-gather n 1 "));
            assert_non_null(strstr(text, "rank 1: all-gather n 2 "));
        }
    }
}

UNIT_TEST(meshes_that_are_no_world_are_refused)
{
    static const uint32_t extent[][2] = {
        {0, 1}, {1, 0}, {1, 513}, {27, 19}, {65536, 65536}};
    struct world_result result[WORLD_MAX_RANKS];

    for (uint32_t i = 0; i < 5; i++) {
        struct fsdp_mesh mesh = mesh_of(extent[i]);
        struct fsdp_error error = {0};
        int status = world_run(WORLD_LOCAL, &mesh, TIMEOUT_MS, nothing, NULL,
                               result, &error);
        assert_int_equal(status, FSDP_ERR_INVALID);
        assert_int_equal(error.status, FSDP_ERR_INVALID);
    }
    struct fsdp_mesh mesh = mesh_of((const uint32_t[]){1, 2});
    assert_int_equal(
        world_run(4, &mesh, TIMEOUT_MS, nothing, NULL, result, NULL),
        FSDP_ERR_INVALID);
    assert_int_equal(
        world_run(WORLD_LOCAL, &mesh, 0, nothing, NULL, result, NULL),
        FSDP_ERR_INVALID);
    mesh.n_dims = 0;
    assert_int_equal(
        world_run(WORLD_LOCAL, &mesh, TIMEOUT_MS, nothing, NULL, result, NULL),
        FSDP_ERR_INVALID);
}

UNIT_TEST(the_largest_world_runs)
{
    expect_all_well(8, 8, nothing);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(collectives_match_their_definition),
        cmocka_unit_test(exchange_gathers),
        cmocka_unit_test(groups_operate_at_the_same_time),
        cmocka_unit_test(other_dtypes_are_moved_but_not_reduced),
        cmocka_unit_test(halves_are_reduced),
        cmocka_unit_test(structs_grow_at_their_end),
        cmocka_unit_test(bad_calls_are_refused),
        cmocka_unit_test(disagreement_is_told_to_all),
        cmocka_unit_test(meshes_that_are_no_world_are_refused),
        cmocka_unit_test(the_largest_world_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulated_nccl_test.c - the emulation of NCCL refuses what NCCL refuses, of
 * communicators that do not block: calls while one is in progress, or while the
 * thread of another one is left behind, ranks on one GPU, a communicator that
 * was destroyed.
 */
#include "cuda/emulated/emulated.h"
#include "cuda/emulated/nccl.h"

#include "testing/unit_testing.h"

#include <stdlib.h>
#include <string.h>

/* This thread plays both ranks: each does its part when its turn comes. */
struct pair {
    ncclComm_t comm[2];
    cudaStream_t stream[2];
    float *x[2];
};

static void join(struct pair *p, int second_gpu)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId id;

    config.blocking = 0;
    memset(p, 0, sizeof(*p));
    assert_int_equal(ncclGetUniqueId(&id), ncclSuccess);
    for (int r = 0; r < 2; r++) {
        void *memory = NULL;

        emulated_set_rank((uint32_t)r);
        assert_int_equal(cudaSetDevice(r == 0 ? 0 : second_gpu), cudaSuccess);
        assert_int_equal(
            cudaStreamCreateWithFlags(&p->stream[r], cudaStreamNonBlocking),
            cudaSuccess);
        assert_int_equal(cudaMalloc(&memory, 64), cudaSuccess);
        p->x[r] = memory;
        assert_int_equal(ncclCommInitRankConfig(&p->comm[r], 2, id, r, &config),
                         ncclInProgress);
    }
}

static ncclResult_t settle(const struct pair *p, int r)
{
    ncclComm_t comm = p->comm[r];
    ncclResult_t result = ncclInProgress;

    for (int i = 0; i < 100 && result == ncclInProgress; i++) {
        if (ncclCommGetAsyncError(comm, &result) != ncclSuccess) {
            return ncclInternalError;
        }
    }
    return result;
}

static void give(struct pair *p)
{
    for (int r = 0; r < 2; r++) {
        assert_int_equal(cudaStreamDestroy(p->stream[r]), cudaSuccess);
        assert_int_equal(cudaFree(p->x[r]), cudaSuccess);
    }
}

static ncclResult_t gather(struct pair *p, int r)
{
    emulated_set_rank((uint32_t)r);
    return ncclAllGather(p->x[r] + r, p->x[r], 4, ncclUint8, p->comm[r],
                         p->stream[r]);
}

UNIT_TEST(test_in_progress)
{
    struct pair p;

    join(&p, 1);
    assert_int_equal(gather(&p, 0), ncclInvalidArgument); /* not ready yet */
    assert_int_equal(ncclCommDestroy(p.comm[0]), ncclInvalidArgument);
    assert_int_equal(settle(&p, 0), ncclSuccess);
    assert_int_equal(settle(&p, 1), ncclSuccess);
    for (int i = 0; i < 4; i++) {
        for (int r = 0; r < 2; r++) {
            assert_int_equal(gather(&p, r), ncclInProgress);
            assert_int_equal(gather(&p, r), ncclInvalidArgument);
            assert_int_equal(settle(&p, r), ncclSuccess);
        }
    }
    while (!emulated_flush()) {
    }
    for (int r = 0; r < 2; r++) {
        emulated_set_rank((uint32_t)r);
        assert_int_equal(ncclCommFinalize(p.comm[r]), ncclInProgress);
        assert_int_equal(ncclCommFinalize(p.comm[r]), ncclInvalidArgument);
        assert_int_equal(settle(&p, r), ncclSuccess);
        assert_int_equal(ncclCommFinalize(p.comm[r]), ncclInvalidArgument);
        assert_int_equal(ncclCommDestroy(p.comm[r]), ncclSuccess);
        assert_int_equal(ncclCommDestroy(p.comm[r]), ncclInvalidArgument);
        assert_int_equal(gather(&p, r), ncclInvalidArgument);
        assert_int_equal(ncclCommAbort(p.comm[r]), ncclInvalidArgument);
    }
    give(&p);
}

/* A rank of two groups: between them something is asked of the first. */
UNIT_TEST(test_two_groups)
{
    struct pair p[2];
    int count = 0;

    for (int i = 0; i < 2; i++) {
        join(&p[i], 1);
        for (int r = 0; r < 2; r++) {
            emulated_set_rank((uint32_t)r);
            assert_int_equal(settle(&p[i], r), ncclSuccess);
            assert_int_equal(ncclCommCount(p[i].comm[r], &count), ncclSuccess);
            assert_int_equal(count, 2);
        }
    }
    for (int r = 0; r < 2; r++) {
        assert_int_equal(gather(&p[0], r), ncclInProgress);
        assert_int_equal(settle(&p[0], r), ncclSuccess);
        assert_int_equal(gather(&p[1], r), ncclInternalError);
        assert_int_equal(ncclCommCount(p[0].comm[r], &count), ncclSuccess);
        assert_int_equal(gather(&p[1], r), ncclInProgress);
        assert_int_equal(settle(&p[1], r), ncclSuccess);
    }
    while (!emulated_flush()) {
    }
    for (int i = 0; i < 2; i++) {
        for (int r = 0; r < 2; r++) {
            assert_int_equal(ncclCommAbort(p[i].comm[r]), ncclSuccess);
        }
        give(&p[i]);
    }
}

UNIT_TEST(test_one_gpu)
{
    struct pair p;

    join(&p, 0);
    for (int r = 0; r < 2; r++) {
        assert_int_equal(settle(&p, r), ncclInvalidUsage);
        assert_int_equal(gather(&p, r), ncclInvalidUsage);
        assert_int_equal(ncclCommAbort(p.comm[r]), ncclSuccess);
    }
    give(&p);
}

/* Memory that a GPU cannot read: this is seen when the work is done, and
 * sticks. */
UNIT_TEST(test_host_memory)
{
    static float host[2];
    struct pair p;

    join(&p, 1);
    assert_int_equal(settle(&p, 0), ncclSuccess);
    assert_int_equal(settle(&p, 1), ncclSuccess);
    emulated_set_rank(0);
    assert_int_equal(
        ncclAllGather(host, p.x[0], 4, ncclUint8, p.comm[0], p.stream[0]),
        ncclInProgress);
    assert_true(emulated_flush());
    assert_int_equal(emulated_broken(), cudaErrorIllegalAddress);
    for (int r = 0; r < 2; r++) {
        assert_int_equal(ncclCommAbort(p.comm[r]), ncclSuccess);
    }
    assert_int_equal(cudaSetDevice(0), cudaSuccess);
    give(&p);
}

/* In place is in one's own place. */
UNIT_TEST(test_in_place)
{
    struct pair p;
    ncclComm_t comm;

    join(&p, 1);
    assert_int_equal(settle(&p, 0), ncclSuccess);
    assert_int_equal(settle(&p, 1), ncclSuccess);
    emulated_set_rank(1);
    comm = p.comm[1];
    assert_int_equal(
        ncclAllGather(p.x[1], p.x[1], 4, ncclUint8, comm, p.stream[1]),
        ncclInvalidUsage);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ncclReduceScatter(p.x[1], p.x[1] + 2 * i, 2,
                                           ncclFloat32, ncclSum, comm,
                                           p.stream[1]),
                         i == 0 ? ncclInvalidUsage : ncclInProgress);
    }
    for (int r = 0; r < 2; r++) {
        assert_int_equal(ncclCommAbort(p.comm[r]), ncclSuccess);
    }
    assert_int_equal(cudaSetDevice(0), cudaSuccess);
    give(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_progress), cmocka_unit_test(test_two_groups),
        cmocka_unit_test(test_in_place),    cmocka_unit_test(test_one_gpu),
        cmocka_unit_test(test_host_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}

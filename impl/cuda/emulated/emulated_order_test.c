/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulated_order_test.c - what the orders of the emulation show. Two streams
 * share one buffer: what one brings into it the other takes out. With all
 * waits every order has the same result; one that is left out shows in some:
 * late work shows a reader that does not wait, drawn work a writer too.
 */
#include "cuda/emulated/emulated.h"

#include "testing/unit_testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    TURNS = 12,
    FLOATS = 8,
    SEEDS = 12,
};

/* Which wait is left out. */
enum planted {
    NOTHING,
    READY, /* the buffer is full before it is read */
    REUSE, /* it was read before it is filled again */
    HOST,  /* it was copied before the host writes the next */
};

struct gpu {
    cudaStream_t bring, take;
    cudaEvent_t full, empty;
    float *pinned, *buffer, *out;
};

static bool good(cudaError_t status)
{
    if (status != cudaSuccess) {
        printf("%s\n", cudaGetErrorName(status));
    }
    return status == cudaSuccess;
}

static bool open_gpu(struct gpu *g)
{
    const size_t bytes = FLOATS * sizeof(float);
    void *p[3] = {NULL, NULL, NULL};
    bool all = good(cudaSetDevice(0)) && good(cudaMalloc(&p[0], bytes)) &&
               good(cudaMalloc(&p[1], TURNS * bytes)) &&
               good(cudaHostAlloc(&p[2], TURNS * bytes, 0));

    g->buffer = p[0];
    g->out = p[1];
    g->pinned = p[2];
    return all &&
           good(cudaStreamCreateWithFlags(&g->bring, cudaStreamNonBlocking)) &&
           good(cudaStreamCreateWithFlags(&g->take, cudaStreamNonBlocking)) &&
           good(cudaEventCreateWithFlags(&g->full, cudaEventDisableTiming)) &&
           good(cudaEventCreateWithFlags(&g->empty, cudaEventDisableTiming));
}

static bool wait_for(cudaEvent_t event)
{
    cudaError_t status;

    while ((status = cudaEventQuery(event)) == cudaErrorNotReady) {
    }
    return good(status);
}

static bool turn(struct gpu *g, int i, enum planted planted)
{
    const size_t bytes = FLOATS * sizeof(float);
    float *from = g->pinned + (planted == HOST ? 0 : i * FLOATS);
    bool all = true;

    for (int k = 0; k < FLOATS; k++) {
        from[k] = (float)(i * FLOATS + k);
    }
    if (planted != REUSE) {
        all = all && good(cudaStreamWaitEvent(g->bring, g->empty, 0));
    }
    all = all &&
          good(cudaMemcpyAsync(g->buffer, from, bytes, cudaMemcpyDefault,
                               g->bring)) &&
          good(cudaEventRecord(g->full, g->bring));
    if (planted != READY) {
        all = all && good(cudaStreamWaitEvent(g->take, g->full, 0));
    }
    return all &&
           good(cudaMemcpyAsync(g->out + i * FLOATS, g->buffer, bytes,
                                cudaMemcpyDefault, g->take)) &&
           good(cudaEventRecord(g->empty, g->take));
}

/* 0: the result is right, 1: it is not, 2: something else went wrong. */
static int play(enum planted planted)
{
    struct gpu g;
    void *p = NULL;
    float *host;
    bool all = open_gpu(&g);

    for (int i = 0; i < TURNS && all; i++) {
        all = turn(&g, i, planted);
    }
    all = all && good(cudaHostAlloc(&p, TURNS * FLOATS * sizeof(float), 0)) &&
          good(cudaMemcpyAsync(p, g.out, TURNS * FLOATS * sizeof(float),
                               cudaMemcpyDefault, g.take)) &&
          good(cudaEventRecord(g.empty, g.take)) && wait_for(g.empty);
    host = p;
    for (int i = 0; i < TURNS * FLOATS && all; i++) {
        if (!(host[i] == (float)i)) {
            return 1;
        }
    }
    return all ? 0 : 2;
}

/* In a process of its own, which nothing has happened in. */
static bool finds(const char *order, enum planted planted)
{
    pid_t child = fork();
    int status = -1;

    if (child == 0) {
        (void)setenv("FSDP_EMULATED_ORDER", order, 1);
        _exit(play(planted));
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 2);
    return WEXITSTATUS(status) == 1;
}

/* How many seeds find the planted fault. */
static int seeds_that_find(enum planted planted)
{
    int n = 0;

    for (int seed = 1; seed <= SEEDS; seed++) {
        char order[16];

        snprintf(order, sizeof(order), "%d", seed);
        n += finds(order, planted);
    }
    return n;
}

UNIT_TEST(test_right)
{
    assert_false(finds("late", NOTHING));
    assert_false(finds("early", NOTHING));
    assert_int_equal(seeds_that_find(NOTHING), 0);
}

UNIT_TEST(test_reader)
{
    assert_true(finds("late", READY));
    assert_false(finds("early", READY));
    assert_true(seeds_that_find(READY) >= SEEDS / 2);
}

UNIT_TEST(test_writer)
{
    assert_false(finds("late", REUSE)); /* what drawn orders are for */
    assert_false(finds("early", REUSE));
    assert_true(seeds_that_find(REUSE) >= SEEDS / 2);
}

UNIT_TEST(test_host)
{
    assert_true(finds("late", HOST));
    assert_false(finds("early", HOST));
    assert_true(seeds_that_find(HOST) >= SEEDS / 2);
}

UNIT_TEST(test_same_seed)
{
    for (int i = 0; i < 4; i++) {
        assert_true(finds("3", REUSE) == finds("3", REUSE));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right),     cmocka_unit_test(test_reader),
        cmocka_unit_test(test_writer),    cmocka_unit_test(test_host),
        cmocka_unit_test(test_same_seed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}

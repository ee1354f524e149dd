/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulated_growth_test.c - the emulation takes the memory that it needs itself
 * with the first stream, as memory that a driver reserves: a process grows in a
 * run by what the engine does, not by the first kernel of many threads. And
 * streams hold only so much, as real ones do.
 */
#include "cuda/emulated/emulated_block.h"
#include "cuda/emulated/emulated_queue.h"

#include "testing/unit_testing.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MOST_THREADS = 1024,
    STACKS = MOST_THREADS * 64 * 1024, /* addresses of all stacks */
    LITTLE = 1 << 20, /* a quarter of a page for each of the threads */
};

static size_t resident(void)
{
    FILE *f = fopen("/proc/self/smaps_rollup", "re");
    char line[256];
    size_t kilobytes = 0;

    assert_non_null(f);
    while (fgets(line, sizeof(line), f)) {
        if (strncmp(line, "Rss:", 4) == 0) {
            kilobytes = strtoull(line + 4, NULL, 10);
        }
    }
    fclose(f);
    assert_true(kilobytes > 0);
    return kilobytes * 1024;
}

static size_t addresses(void)
{
    FILE *f = fopen("/proc/self/statm", "re");
    char line[256] = "";

    assert_non_null(f);
    assert_non_null(fgets(line, sizeof(line), f));
    fclose(f);
    return strtoull(line, NULL, 10) * (size_t)sysconf(_SC_PAGESIZE);
}

static unsigned int ran;

static void kernel(void *self)
{
    (void)self;
    ran++;
    emulated_barrier(0);
}

static void run_block(void)
{
    const struct dim3 grid = {1, 1, 1};
    const struct dim3 block = {MOST_THREADS, 1, 1};

    ran = 0;
    assert_true(emulated_grid(grid, block, kernel, NULL));
    assert_int_equal(ran, MOST_THREADS);
}

static cudaStream_t open_stream(void)
{
    cudaStream_t stream = NULL;

    assert_int_equal(cudaSetDevice(0), cudaSuccess);
    assert_int_equal(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
                     cudaSuccess);
    return stream;
}

UNIT_TEST(test_first_kernel)
{
    cudaStream_t stream = open_stream();
    size_t before = resident();

    run_block();
    assert_true(resident() < before + LITTLE);
    assert_int_equal(cudaStreamDestroy(stream), cudaSuccess);
}

static void *choose(void *little)
{
    size_t before;

    (void)resident(); /* what the C library takes for the thread */
    before = resident();
    *(bool *)little =
        cudaSetDevice(0) == cudaSuccess && resident() < before + LITTLE;
    return NULL;
}

/* A thread that only chooses the GPU, to abort a communicator, say, takes none
 * of that memory: it runs beside the rank's thread, and the process may be
 * measured before it begins or after. */
UNIT_TEST(test_thread_without_stream)
{
    bool little = false;
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, choose, &little), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(little);
}

static void *be_rank(void *self)
{
    cudaStream_t stream = open_stream();

    (void)self;
    run_block();
    assert_int_equal(cudaStreamDestroy(stream), cudaSuccess);
    return NULL;
}

static void play_rank(void)
{
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, be_rank, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* A world of threads makes new ones for each case. */
UNIT_TEST(test_end_of_a_thread)
{
    size_t before;

    play_rank(); /* what the C library keeps of threads */
    before = addresses();
    play_rank();
    play_rank();
    assert_true(addresses() < before + STACKS);
}

static void count(void *self)
{
    (void)self;
    ran++;
}

static const char counting;

/* As long as no thread waits, a stream holds so many launches and no more: a
 * launch that finds no place waits for the first one. */
UNIT_TEST(test_places)
{
    struct cudaFuncAttributes attributes;
    cudaLaunchConfig_t config = {{1, 1, 1}, {1, 1, 1}, 0, open_stream()};

    assert_int_equal(cudaFuncGetAttributes(&attributes, &counting),
                     cudaSuccess);
    ran = 0;
    for (unsigned int i = 0; i < EMULATED_PLACES + 10; i++) {
        assert_int_equal(ran, i > EMULATED_PLACES ? i - EMULATED_PLACES : 0);
        assert_int_equal(emulated_launch(&config, &counting, count, malloc(1)),
                         cudaSuccess);
    }
    assert_int_equal(cudaStreamQuery(config.stream), cudaSuccess);
    assert_int_equal(ran, EMULATED_PLACES + 10);
    assert_int_equal(cudaStreamDestroy(config.stream), cudaSuccess);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_kernel),
        cmocka_unit_test(test_thread_without_stream),
        cmocka_unit_test(test_end_of_a_thread),
        cmocka_unit_test(test_places),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}

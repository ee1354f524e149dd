/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world_failure_test.c - ranks that fail, die, hang or leave: the others learn
 * it, the caller learns who it was, and nothing is left behind.
 */
#include "arena.h"
#include "world_body_testing.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "testing/unit_testing.h"

enum {
    K = 4,
    CULPRIT = 1,
    PATIENT_MS = 20000,
    HASTY_MS = 500,
    EXIT_HUNG = 70,
};

static const uint32_t kinds[] = {WORLD_LOCAL, WORLD_CARRIED, WORLD_THREADS};
enum {
    N_KINDS = 3,
    PROCESSES = 2, /* the first kinds */
};

static const char *const dims[] = {"replicate", "shard"};
static const uint32_t extents[] = {1, K};
static const struct fsdp_mesh mesh = {
    .size = sizeof(mesh), .n_dims = 2, .name = dims, .extent = extents};

/* How many ranks of the world that runs have met: shared by all kinds of
 * world. */
static _Atomic uint32_t *met;

static void run_in(uint32_t kind, uint32_t timeout_ms,
                   int (*body)(void *, struct world_rank *),
                   struct world_result *result)
{
    atomic_store(met, 0);
    assert_int_equal(
        world_run(kind, &mesh, timeout_ms, body, NULL, result, NULL), FSDP_OK);
    errno = 0;
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

/* All ranks meet once; then all but the culprit wait in a barrier. A culprit
 * that leaves first could end the world before others know that they have met,
 * so it waits for them. */
static int others_wait(void *context, struct world_rank *rank)
{
    float x = 1;
    float sum = 0;

    (void)context;
    FSDP_TRY(world_body_run(rank, FSDP_ALL_REDUCE, 1, &x, &sum));
    atomic_fetch_add(met, 1);
    if (rank->rank == CULPRIT) {
        while (atomic_load(met) < K) {
            (void)poll(NULL, 0, 1);
        }
        return FSDP_OK;
    }
    return world_body_run(rank, FSDP_BARRIER, 0, NULL, NULL);
}

static void expect_others(const struct world_result *result, uint32_t end,
                          int32_t status)
{
    for (uint32_t r = 0; r < K; r++) {
        if (r != CULPRIT) {
            assert_int_equal(result[r].end, end);
            assert_int_equal(result[r].status, status);
            assert_int_equal(result[r].n_collectives, 2);
            assert_int_equal(result[r].in_collective, 1);
            assert_int_equal(result[r].last_kind, FSDP_BARRIER);
            assert_int_equal(result[r].last_unit, 3);
        }
    }
    assert_int_equal(result[CULPRIT].n_collectives, 1);
    assert_int_equal(result[CULPRIT].in_collective, 0);
    assert_int_equal(result[CULPRIT].last_kind, FSDP_ALL_REDUCE);
}

static int fails(void *context, struct world_rank *rank)
{
    int status = others_wait(context, rank);
    if (rank->rank == CULPRIT) {
        rank->error->status = FSDP_ERR_NOMEM;
        snprintf(rank->error->message, sizeof(rank->error->message),
                 "two terabytes");
        return FSDP_ERR_NOMEM;
    }
    /* Later calls of any kind fail, too. */
    char all[K];
    if (world_body_run(rank, FSDP_BARRIER, 0, NULL, NULL) != FSDP_ERR_ABORTED ||
        rank->exchange(rank->exchange_self, "a", 1, all) != FSDP_ERR_ABORTED) {
        return FSDP_ERR_INTERNAL;
    }
    return status;
}

UNIT_TEST(a_failure_aborts_the_others)
{
    for (uint32_t k = 0; k < N_KINDS; k++) {
        struct world_result result[K];
        run_in(kinds[k], PATIENT_MS, fails, result);
        expect_others(result, WORLD_RETURNED, FSDP_ERR_ABORTED);
        assert_int_equal(result[CULPRIT].end, WORLD_RETURNED);
        assert_int_equal(result[CULPRIT].status, FSDP_ERR_NOMEM);
        assert_string_equal(result[CULPRIT].error.message, "two terabytes");
    }
}

static int aborts(void *context, struct world_rank *rank)
{
    FSDP_TRY(others_wait(context, rank));
    rank->comm.abort(rank->comm.self, FSDP_ERR_DEVICE);
    rank->comm.abort(rank->comm.self, FSDP_OK);
    return FSDP_OK;
}

UNIT_TEST(abort_ends_pending_calls)
{
    for (uint32_t k = 0; k < N_KINDS; k++) {
        struct world_result result[K];
        run_in(kinds[k], PATIENT_MS, aborts, result);
        expect_others(result, WORLD_RETURNED, FSDP_ERR_ABORTED);
        assert_int_equal(result[CULPRIT].status, FSDP_OK);
    }
}

/* Gives a reduce-scatter blocks that other ranks may not read. */
static int cannot_be_read(void *context, struct world_rank *rank)
{
    enum {
        BLOCK = 256 * 1024, /* bytes, whole pages */
        N = BLOCK / (int)sizeof(float),
    };
    (void)context;
    size_t bytes = (size_t)BLOCK * K;
    static float out[N];
    unsigned char *in = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (in == MAP_FAILED) {
        return FSDP_ERR_NOMEM;
    }
    for (uint32_t r = 0; r < K; r++) {
        if (rank->rank == CULPRIT && r != CULPRIT &&
            mprotect(in + (size_t)BLOCK * r, BLOCK, PROT_NONE) != 0) {
            return FSDP_ERR_INTERNAL;
        }
    }
    int status = world_body_run(rank, FSDP_REDUCE_SCATTER, N, in, out);
    (void)munmap(in, bytes);
    return status;
}

/* COMM if members read each other's memory; else the culprit dies. */
UNIT_TEST(what_cannot_be_read_is_a_failure)
{
    struct world_result result[K];
    run_in(WORLD_LOCAL, PATIENT_MS, cannot_be_read, result);
    for (uint32_t r = 0; r < K; r++) {
        if (r != CULPRIT) {
            assert_int_equal(result[r].end, WORLD_RETURNED);
            assert_true(result[r].status == FSDP_ERR_COMM ||
                        result[r].status == FSDP_ERR_ABORTED);
            assert_true(result[r].status == FSDP_ERR_ABORTED ||
                        result[r].error.message[0] != '\0');
        }
    }
}

static int exits(void *context, struct world_rank *rank)
{
    FSDP_TRY(others_wait(context, rank));
    exit(3);
}

static int crashes(void *context, struct world_rank *rank)
{
    FSDP_TRY(others_wait(context, rank));
    (void)raise(SIGSEGV);
    return FSDP_OK;
}

static int is_killed(void *context, struct world_rank *rank)
{
    FSDP_TRY(others_wait(context, rank));
    (void)raise(SIGKILL);
    return FSDP_OK;
}

UNIT_TEST(a_death_aborts_the_others)
{
    struct world_result result[K];

    for (uint32_t k = 0; k < PROCESSES; k++) {
        run_in(kinds[k], PATIENT_MS, exits, result);
        expect_others(result, WORLD_RETURNED, FSDP_ERR_ABORTED);
        assert_int_equal(result[CULPRIT].end, WORLD_EXITED);
        assert_int_equal(result[CULPRIT].status, 3);

        run_in(kinds[k], PATIENT_MS, crashes, result);
        expect_others(result, WORLD_RETURNED, FSDP_ERR_ABORTED);
        assert_int_equal(result[CULPRIT].end, WORLD_SIGNALLED);
        assert_int_equal(result[CULPRIT].signal, SIGSEGV);

        run_in(kinds[k], PATIENT_MS, is_killed, result);
        expect_others(result, WORLD_RETURNED, FSDP_ERR_ABORTED);
        assert_int_equal(result[CULPRIT].end, WORLD_SIGNALLED);
        assert_int_equal(result[CULPRIT].signal, SIGKILL);
    }
}

static int hangs(void *context, struct world_rank *rank)
{
    FSDP_TRY(others_wait(context, rank));
    while (pause() < 0) {
    }
    return FSDP_OK;
}

UNIT_TEST(a_hang_is_ended)
{
    for (uint32_t k = 0; k < PROCESSES; k++) {
        struct world_result result[K];
        int64_t begin = arena_now_ms();

        run_in(kinds[k], HASTY_MS, hangs, result);

        assert_true(arena_now_ms() - begin >= 2L * HASTY_MS);
        assert_true(arena_now_ms() - begin < PATIENT_MS);
        expect_others(result, WORLD_TIMED_OUT, FSDP_ERR_ABORTED);
        assert_int_equal(result[CULPRIT].end, WORLD_TIMED_OUT);
        assert_int_equal(result[CULPRIT].status, FSDP_ERR_TIMEOUT);
        assert_int_equal(result[CULPRIT].signal, SIGKILL);
    }
}

static int is_slow(void *context, struct world_rank *rank)
{
    FSDP_TRY(others_wait(context, rank));
    world_body_dawdle(rank);
    return FSDP_OK;
}

UNIT_TEST(a_slow_thread_is_noticed)
{
    struct world_result result[K];

    run_in(WORLD_THREADS, HASTY_MS, is_slow, result);

    expect_others(result, WORLD_TIMED_OUT, FSDP_ERR_ABORTED);
    assert_int_equal(result[CULPRIT].end, WORLD_TIMED_OUT);
}

UNIT_TEST(a_hanging_thread_ends_the_process)
{
    pid_t pid = fork();
    if (pid == 0) {
        struct world_result result[K];
        (void)fclose(stderr);
        (void)world_run(WORLD_THREADS, &mesh, HASTY_MS, hangs, NULL, result,
                        NULL);
        _exit(0);
    }
    int wait_status = 0;
    assert_int_equal(waitpid(pid, &wait_status, 0), pid);
    assert_true(WIFEXITED(wait_status));
    assert_int_equal(WEXITSTATUS(wait_status), EXIT_HUNG);
}

/* An engine that does not look at what its collectives return. */
static int ignores_everything(void *context, struct world_rank *rank)
{
    (void)context;
    if (rank->rank == CULPRIT) {
        return FSDP_ERR_INTERNAL;
    }
    for (;;) {
        (void)world_body_run(rank, FSDP_BARRIER, 0, NULL, NULL);
    }
}

UNIT_TEST(who_ignores_an_abort_is_ended)
{
    for (uint32_t k = 0; k < PROCESSES; k++) {
        struct world_result result[K];

        run_in(kinds[k], HASTY_MS, ignores_everything, result);

        assert_int_equal(result[CULPRIT].end, WORLD_RETURNED);
        for (uint32_t r = 0; r < K; r++) {
            if (r != CULPRIT) {
                assert_int_equal(result[r].end, WORLD_TIMED_OUT);
                assert_int_equal(result[r].status, FSDP_ERR_TIMEOUT);
            }
        }
    }
}

/* Found long before the watchdog would: a rank that has returned will never
 * come. The first rank to find out fails, and that may abort the others before
 * they do. */
UNIT_TEST(leaving_early_is_a_mismatch)
{
    for (uint32_t k = 0; k < N_KINDS; k++) {
        struct world_result result[K];
        uint32_t told = 0;
        run_in(kinds[k], PATIENT_MS, others_wait, result);
        for (uint32_t r = 0; r < K; r++) {
            int32_t status = result[r].status;
            assert_int_equal(result[r].end, WORLD_RETURNED);
            if (r == CULPRIT) {
                assert_int_equal(status, FSDP_OK);
            } else if (status == FSDP_ERR_MISMATCH) {
                told++;
                assert_non_null(strstr(result[r].error.message, "rank 1 "));
            } else {
                assert_int_equal(status, FSDP_ERR_ABORTED);
            }
        }
        assert_true(told >= 1);
    }
}

static int waits_for_a_signal(void *context, struct world_rank *rank)
{
    const int *pipe_ends = context;
    (void)world_body_run(rank, FSDP_BARRIER, 0, NULL, NULL);
    (void)!write(pipe_ends[1], "x", 1);
    while (pause() < 0) {
    }
    return FSDP_OK;
}

/* The ranks hold the pipe open; that it closes shows that all are gone. */
static void die_with_parent(uint32_t kind)
{
    int ends[2];
    char byte;
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct world_result result[K];
        (void)world_run(kind, &mesh, PATIENT_MS, waits_for_a_signal, ends,
                        result, NULL);
        _exit(0);
    }
    (void)close(ends[1]);
    for (uint32_t r = 0; r < K; r++) {
        assert_int_equal(read(ends[0], &byte, 1), 1);
    }
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);

    struct pollfd end = {.fd = ends[0], .events = POLLIN};
    assert_int_equal(poll(&end, 1, PATIENT_MS / 2), 1);
    assert_int_equal(read(ends[0], &byte, 1), 0);
    (void)close(ends[0]);
}

UNIT_TEST(ranks_die_with_their_parent)
{
    for (uint32_t k = 0; k < PROCESSES; k++) {
        die_with_parent(kinds[k]);
    }
}

static uint32_t count_lines(const char *path)
{
    uint32_t n = 0;
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    for (int c = fgetc(file); c != EOF; c = fgetc(file)) {
        n += c == '\n';
    }
    (void)fclose(file);
    return n;
}

static uint32_t count_entries(const char *path)
{
    uint32_t n = 0;
    DIR *directory = opendir(path);
    assert_non_null(directory);
    while (readdir(directory)) {
        n++;
    }
    (void)closedir(directory);
    return n;
}

UNIT_TEST(many_worlds_leave_nothing_behind)
{
    struct world_result result[K];
    run_in(WORLD_CARRIED, PATIENT_MS, others_wait, result);
    run_in(WORLD_LOCAL, PATIENT_MS, crashes, result);
    uint32_t files = count_entries("/proc/self/fd");
    uint32_t maps = count_lines("/proc/self/maps");

    for (uint32_t i = 0; i < 300; i++) {
        run_in(kinds[i / 2 % PROCESSES], PATIENT_MS,
               i % 2 == 0 ? others_wait : crashes, result);
    }

    assert_int_equal(count_entries("/proc/self/fd"), files);
    /* An allocator may map a little of its own meanwhile. */
    assert_true(count_lines("/proc/self/maps") <= maps + 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failure_aborts_the_others),
        cmocka_unit_test(abort_ends_pending_calls),
        cmocka_unit_test(what_cannot_be_read_is_a_failure),
        cmocka_unit_test(a_death_aborts_the_others),
        cmocka_unit_test(a_hang_is_ended),
        cmocka_unit_test(a_slow_thread_is_noticed),
        cmocka_unit_test(a_hanging_thread_ends_the_process),
        cmocka_unit_test(who_ignores_an_abort_is_ended),
        cmocka_unit_test(leaving_early_is_a_mismatch),
        cmocka_unit_test(ranks_die_with_their_parent),
        cmocka_unit_test(many_worlds_leave_nothing_behind),
    };
    met = mmap(NULL, sizeof(*met), PROT_READ | PROT_WRITE,
               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (met == MAP_FAILED) {
        return 1;
    }
    /* Crashes are on purpose here and need no core. */
    (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0});
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}

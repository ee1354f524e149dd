/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_ipc_test.c - two ranks, processes that reach each other by CUDA IPC: a
 * collective, and a rank that closes while one is still under way.
 */
#include "cuda_testing.h"

#include <fsdp/comm.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    RANKS = 2,
    N = 50000, /* floats a rank: several turns of an outbox */
};

/* What ranks share, in memory that both have. */
struct table {
    pthread_barrier_t barrier;
    unsigned char all[RANKS][4096];
};

static struct table *table;

static int exchange(void *self, const void *mine, uint64_t bytes, void *all)
{
    const struct fsdp_env *env = self;

    memcpy(table->all[env->rank], mine, bytes);
    pthread_barrier_wait(&table->barrier);
    for (uint32_t r = 0; r < RANKS; r++) {
        memcpy((unsigned char *)all + r * bytes, table->all[r], bytes);
    }
    pthread_barrier_wait(&table->barrier);
    return FSDP_OK;
}

static int open_rank(uint32_t rank)
{
    static const uint32_t extent[] = {1, RANKS};
    static const char *const name[] = {"replicate", "shard"};
    static const struct fsdp_mesh mesh = {sizeof(mesh), 2, name, extent};
    static const struct fsdp_comm comm = {.size = sizeof(comm),
                                          .abort = abort_alone};

    cuda_env = (struct fsdp_env){.size = sizeof(cuda_env),
                                 .rank = rank,
                                 .world = RANKS,
                                 .mesh = &mesh,
                                 .comm = &comm,
                                 .error = &cuda_error,
                                 .exchange = exchange,
                                 .exchange_self = &cuda_env};
    return cuda_open(&cuda_env);
}

static int gather(struct fsdp_stream *stream, const void *in, void *out)
{
    const struct fsdp_collective c = {.size = sizeof(c),
                                      .kind = FSDP_ALL_GATHER,
                                      .dim = FSDP_DIM_SHARD,
                                      .dtype = FSDP_DTYPE_F32,
                                      .n = N,
                                      .in = in,
                                      .out = out};

    return cuda_env.comm->run(cuda_env.comm->self, stream, &c);
}

/* One all-gather whose numbers are compared, and one that no rank waits for. */
static int be_rank(uint32_t rank)
{
    static float host[RANKS * N];
    const struct fsdp_device *d = cuda_env.device;
    struct fsdp_stream *stream = NULL;
    void *in = NULL;
    void *out = NULL;

    for (uint32_t i = 0; i < N; i++) {
        host[i] = (float)(rank * N + i);
    }
    FSDP_TRY(d->stream_open(d->self, "test", &stream));
    FSDP_TRY(d->alloc(d->self, N * sizeof(float), &in));
    FSDP_TRY(d->alloc(d->self, sizeof(host), &out));
    FSDP_TRY(d->copy(d->self, NULL, in, host, N * sizeof(float)));
    FSDP_TRY(gather(NULL, in, out));
    FSDP_TRY(d->copy(d->self, NULL, host, out, sizeof(host)));
    for (uint32_t i = 0; i < RANKS * N; i++) {
        if (host[i] != (float)i) {
            return FSDP_ERR_MISMATCH;
        }
    }
    return gather(stream, in, out);
}

static int be_process(uint32_t rank)
{
    int status = open_rank(rank);

    if (status == FSDP_OK) {
        status = be_rank(rank);
        cuda_close(&cuda_env);
    }
    if (status != FSDP_OK || cuda_error.status != FSDP_OK) {
        printf("rank %u: %d: %s\n", rank, status, cuda_error.message);
        fflush(stdout);
        return 1;
    }
    return 0;
}

UNIT_TEST(test_close_at_once)
{
    pid_t child[RANKS];

    for (uint32_t r = 0; r < RANKS; r++) {
        child[r] = fork();
        assert_true(child[r] >= 0);
        if (child[r] == 0) {
            _exit(be_process(r));
        }
    }
    for (uint32_t r = 0; r < RANKS; r++) {
        int status = -1;

        assert_int_equal(waitpid(child[r], &status, 0), child[r]);
        assert_int_equal(status, 0);
    }
}

/* In a process of its own: one that has used a GPU cannot be forked. */
static int ask_for_gpu(void)
{
    pid_t child = fork();
    int status = -1;

    if (child == 0) {
        int skip = skip_without_gpu();

        fflush(stdout);
        _exit(skip);
    }
    if (child < 0 || waitpid(child, &status, 0) != child) {
        return 1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_close_at_once),
    };
    int skip = ask_for_gpu();
    pthread_barrierattr_t shared;

    if (skip != 0) {
        return skip;
    }
    setenv("FSDP_CUDA_COMM", "ipc", 1);
    setenv("FSDP_CUDA_STAGING", "65536", 1);
    table = mmap(NULL, sizeof(*table), PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (table == MAP_FAILED || pthread_barrierattr_init(&shared) != 0 ||
        pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED) != 0 ||
        pthread_barrier_init(&table->barrier, &shared, RANKS) != 0) {
        return 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collectives_mpi.c - collectives of local worlds beside those of the MPI that
 * started this program, between the same processes:
 *
 *     mpirun -n K bench-collectives [--samples N] [--filter TEXT] [--json FILE]
 *                                   [--commit C]
 *
 * Both are measured in turns, so that other load on the machine affects both; a
 * sample is the slowest rank's time, and a ratio the median of the pairs'
 * ratios. Sizes are those of the whole: K blocks.
 */
#include "tools/bench/bench_report.h"
#include "world/arena.h"

#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    LEAST = 4096,
    MOST = 64 << 20,
    LARGE_PAGE = 2 << 20,
    LONG_TIME_MS = 600000,
    MOST_SAMPLES = 10000,
    FEW = 3, /* fewest runs of a sample */
};

struct shape {
    const char *name;
    uint32_t kind, fold;
};

static const struct shape shapes[] = {
    {"all-gather", FSDP_ALL_GATHER, 0},
    {"reduce-scatter.rank", FSDP_REDUCE_SCATTER, FSDP_FOLD_RANK},
    {"reduce-scatter.ring", FSDP_REDUCE_SCATTER, FSDP_FOLD_RING},
    {"reduce-scatter.tree", FSDP_REDUCE_SCATTER, FSDP_FOLD_TREE},
    {"all-reduce.rank", FSDP_ALL_REDUCE, FSDP_FOLD_RANK},
};

struct bench {
    struct bench_report report;
    struct world_rank *rank;
    float *in, *out;
    double *ours, *theirs, *rate_ours, *rate_theirs;
};

static int run_ours(struct bench *b, const struct shape *s, uint64_t n)
{
    struct fsdp_collective c = {.size = sizeof(c),
                                .kind = s->kind,
                                .dim = FSDP_DIM_WORLD,
                                .dtype = FSDP_DTYPE_F32,
                                .fold = s->fold,
                                .unit = FSDP_NO_UNIT,
                                .n = n,
                                .in = b->in,
                                .out = b->out};

    if (s->kind == FSDP_ALL_GATHER) {
        c.in = b->out + n * b->rank->rank; /* in place, as an engine does */
    }
    return b->rank->comm.run(b->rank->comm.self, NULL, &c);
}

static int run_theirs(struct bench *b, const struct shape *s, uint64_t n)
{
    int count = (int)n;
    int code;

    if (s->kind == FSDP_ALL_GATHER) {
        code = MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, b->out, count,
                             MPI_FLOAT, MPI_COMM_WORLD);
    } else if (s->kind == FSDP_REDUCE_SCATTER) {
        code = MPI_Reduce_scatter_block(b->in, b->out, count, MPI_FLOAT,
                                        MPI_SUM, MPI_COMM_WORLD);
    } else {
        code = MPI_Allreduce(b->in, b->out, count, MPI_FLOAT, MPI_SUM,
                             MPI_COMM_WORLD);
    }
    return code == MPI_SUCCESS ? FSDP_OK : FSDP_ERR_COMM;
}

/* Seconds of one run on the slowest rank, from `repeat` of them. */
static int measure(struct bench *b, const struct shape *s, uint64_t n,
                   uint32_t repeat, bool ours, double *out)
{
    double begin;
    double mine;

    MPI_Barrier(MPI_COMM_WORLD);
    begin = bench_now();
    for (uint32_t i = 0; i < repeat; i++) {
        FSDP_TRY(ours ? run_ours(b, s, n) : run_theirs(b, s, n));
    }
    mine = (bench_now() - begin) / repeat;
    MPI_Allreduce(&mine, out, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return FSDP_OK;
}

static void note(struct bench *b, const struct shape *s, uint64_t bytes)
{
    uint32_t n = b->report.samples;
    char name[BENCH_NAME_BYTES];

    for (uint32_t i = 0; i < n; i++) {
        b->rate_ours[i] = (double)bytes / b->ours[i] * 1e-9;
        b->rate_theirs[i] = (double)bytes / b->theirs[i] * 1e-9;
    }
    if (b->rank->rank != 0) {
        return;
    }
    snprintf(name, sizeof(name), "mpi.collective.%s.%lluk.k%u.local", s->name,
             (unsigned long long)bytes >> 10, b->rank->world);
    bench_add(&b->report, name, "GB/s", b->rate_ours, n, b->rate_theirs, "MPI");
    snprintf(name, sizeof(name), "mpi.collective.%s.%lluk.k%u.mpi", s->name,
             (unsigned long long)bytes >> 10, b->rank->world);
    bench_add(&b->report, name, "GB/s", b->rate_theirs, n, NULL, NULL);
}

/* All ranks were given the same filter. */
static bool wanted(const struct bench *b, const struct shape *s, uint64_t bytes)
{
    char name[BENCH_NAME_BYTES];

    snprintf(name, sizeof(name), "mpi.collective.%s.%lluk.k%u", s->name,
             (unsigned long long)bytes >> 10, b->rank->world);
    return bench_wants(&b->report, name);
}

static int compare(struct bench *b, const struct shape *s, uint64_t bytes)
{
    uint64_t n = bytes / sizeof(float);
    uint32_t repeat = (uint32_t)(((uint64_t)16 << 20) / bytes);

    if (s->kind != FSDP_ALL_REDUCE) {
        n /= b->rank->world;
    }
    repeat = repeat < FEW ? FEW : repeat > 200 ? 200 : repeat;
    FSDP_TRY(measure(b, s, n, FEW, true, &b->ours[0]));
    FSDP_TRY(measure(b, s, n, FEW, false, &b->theirs[0]));
    for (uint32_t i = 0; i < b->report.samples; i++) {
        FSDP_TRY(measure(b, s, n, repeat, i % 2 == 0,
                         i % 2 == 0 ? &b->ours[i] : &b->theirs[i]));
        FSDP_TRY(measure(b, s, n, repeat, i % 2 != 0,
                         i % 2 != 0 ? &b->ours[i] : &b->theirs[i]));
    }
    note(b, s, bytes);
    return FSDP_OK;
}

static int body(void *context, struct world_rank *rank)
{
    struct bench *b = context;

    b->rank = rank;
    for (size_t i = 0; i < MOST / sizeof(float); i++) {
        b->in[i] = (float)(i % 97) * 0.25f + (float)rank->rank;
        b->out[i] = 0.0f;
    }
    for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++) {
        for (uint64_t bytes = LEAST; bytes <= MOST; bytes *= 4) {
            if (wanted(b, &shapes[s], bytes)) {
                FSDP_TRY(compare(b, &shapes[s], bytes));
            }
        }
    }
    return FSDP_OK;
}

/* Memory that all processes see: rank 0's, opened through its descriptor. */
static void *share(size_t bytes, int rank)
{
    long where[2] = {getpid(), -1};
    char path[64];
    int fd = -1;
    void *memory;

    if (rank == 0) {
        fd = memfd_create("fsdp-bench", MFD_CLOEXEC);
        if (fd >= 0 && ftruncate(fd, (off_t)bytes) != 0) {
            close(fd);
            fd = -1;
        }
        where[1] = fd;
    }
    MPI_Bcast(where, 2, MPI_LONG, 0, MPI_COMM_WORLD);
    if (rank != 0) {
        snprintf(path, sizeof(path), "/proc/%ld/fd/%ld", where[0], where[1]);
        fd = open(path, O_RDWR | O_CLOEXEC);
    }
    memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    if (fd >= 0) {
        close(fd);
    }
    return memory == MAP_FAILED ? NULL : memory;
}

/* In large pages, as what the device of an engine has. */
static float *buffer(void)
{
    void *p = aligned_alloc(LARGE_PAGE, MOST);

    if (p) {
        (void)madvise(p, MOST, MADV_HUGEPAGE);
    }
    return p;
}

static int bench(struct bench *b, int rank, int size)
{
    static const char *const names[] = {"world"};
    uint32_t extent = (uint32_t)size;
    struct fsdp_mesh mesh = {sizeof(mesh), 1, names, &extent};
    struct world_job job = {.mesh = &mesh,
                            .n_ranks = extent,
                            .timeout_ms = LONG_TIME_MS,
                            .body = body,
                            .context = b};
    void *memory = share(arena_bytes(&job), rank);
    struct arena *arena;

    b->in = buffer();
    b->out = buffer();
    b->ours = calloc(4 * (size_t)b->report.samples, sizeof(*b->ours));
    if (!memory || !b->in || !b->out || !b->ours) {
        return FSDP_ERR_NOMEM;
    }
    b->theirs = b->ours + b->report.samples;
    b->rate_ours = b->theirs + b->report.samples;
    b->rate_theirs = b->rate_ours + b->report.samples;
    arena = memory;
    if (rank == 0) {
        arena = arena_make(&job, memory);
        /* mpirun has bound this rank to its own core. */
        arena->spare = size <= sysconf(_SC_NPROCESSORS_ONLN);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    arena_rank_run(arena, &job, (uint32_t)rank);
    return arena->rank[rank].status;
}

int main(int argc, char **argv)
{
    struct bench b = {.report = {.samples = 15}};
    const char *path = NULL;
    const char *commit = "unknown";
    struct fsdp_error error = {0};
    int rank;
    int size;
    int status;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 1; i + 1 < argc; i += 2) {
        unsigned long n = strtoul(argv[i + 1], NULL, 10);
        if (strcmp(argv[i], "--samples") == 0 && n > 0 && n <= MOST_SAMPLES) {
            b.report.samples = (uint32_t)n;
        } else if (strcmp(argv[i], "--filter") == 0) {
            b.report.filter = argv[i + 1];
        } else if (strcmp(argv[i], "--json") == 0) {
            path = argv[i + 1];
        } else if (strcmp(argv[i], "--commit") == 0) {
            commit = argv[i + 1];
        } else {
            fprintf(stderr,
                    "bench-collectives: unknown option or value: %s "
                    "%s\n",
                    argv[i], argv[i + 1]);
            MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
        }
    }
    status = bench(&b, rank, size);
    if (status == FSDP_OK && rank == 0) {
        status = bench_write(&b.report, path, commit, &error);
    }
    if (status != FSDP_OK) {
        fprintf(stderr, "bench-collectives: rank %d: %s %s\n", rank,
                fsdp_status_text(status), error.message);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    free(b.in);
    free(b.out);
    free(b.ours);
    bench_release(&b.report);
    MPI_Finalize();
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_benchmark.c - how fast ranks save and load their shards, against
 * plain writing with a flush, and plain reading, of as many bytes on the same
 * disk: what dd does. Prints medians; has no limits to fail by.
 *
 * usage: checkpoint_benchmark FOLDER [MIB [TIMES [RANKS]]]
 * MIB of all ranks together; ranks are threads.
 */
#include "checkpoint.h"
#include "folder_erase.h"

#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    TENSORS = 24,
    MAX_TIMES = 64,
    MAX_RANKS = 16,
    BLOCK = 1 << 20
};

struct bench {
    const char *folder, *directory;
    struct checkpoint_table table;
    uint64_t each; /* elements of a tensor */
    float *data;
    uint32_t ranks;
    int (*remake)(void *context); /* NULL: the old values are to be kept */
    pthread_barrier_t meet;
    unsigned char told[MAX_RANKS][4096];
    bool bad;
};

/* Rank r has the r-th part of every tensor. */
struct rank {
    struct bench *b;
    uint32_t r;
    struct checkpoint_slice slice[TENSORS];
    pthread_t thread;
};

static double now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Processor time of all threads, as others may be using this machine too. */
static double processor(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int exchange(void *self, const void *mine, uint64_t bytes, void *all)
{
    const struct rank *x = self;
    struct bench *b = x->b;
    unsigned char *to = all;

    memcpy(b->told[x->r], mine, bytes);
    (void)pthread_barrier_wait(&b->meet);
    for (uint32_t i = 0; i < b->ranks; i++) {
        memcpy(to + i * bytes, b->told[i], bytes);
    }
    (void)pthread_barrier_wait(&b->meet);
    return FSDP_OK;
}

static int give(void *context, uint32_t i, uint64_t at, uint64_t n, float *to)
{
    const struct rank *x = context;

    memcpy(to, x->b->data + i * x->b->each + x->slice[i].first + at,
           n * sizeof(*to));
    return FSDP_OK;
}

static int remake(void *context)
{
    (void)context;
    return FSDP_OK;
}

static int take(void *context, uint32_t i, uint64_t at, uint64_t n,
                const float *from)
{
    const struct rank *x = context;

    memcpy(x->b->data + i * x->b->each + x->slice[i].first + at, from,
           n * sizeof(*from));
    return FSDP_OK;
}

/* Writes all dirty pages, and lets the system forget those of this file. */
static void forget(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd >= 0) {
        (void)fsync(fd);
        (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        (void)close(fd);
    }
}

static int forget_one(const char *path, const struct stat *s, int type,
                      struct FTW *ftw)
{
    (void)s;
    (void)ftw;
    if (type == FTW_F) {
        forget(path);
    }
    return 0;
}

static double plain_write(const struct bench *b, const char *path)
{
    const char *p = (const char *)b->data;
    uint64_t bytes = TENSORS * b->each * sizeof(float);
    double began = now();
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool good = fd >= 0;

    for (uint64_t at = 0; good && at < bytes; at += BLOCK) {
        uint64_t n = bytes - at < BLOCK ? bytes - at : BLOCK;
        good = write(fd, p + at, n) == (ssize_t)n;
    }
    good = good && fsync(fd) == 0;
    if (fd >= 0) {
        good = close(fd) == 0 && good;
    }
    return good ? now() - began : -1.0;
}

static double plain_read(const char *path)
{
    static char buffer[BLOCK];
    double began = now();
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : 1;

    while (n > 0) {
        n = read(fd, buffer, sizeof(buffer));
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return n == 0 ? now() - began : -1.0;
}

static void *save_rank(void *context)
{
    struct rank *x = context;
    struct bench *b = x->b;
    struct fsdp_error error = {0};
    const struct fsdp_env env = {.size = sizeof(env),
                                 .rank = x->r,
                                 .world = b->ranks,
                                 .error = &error,
                                 .exchange = exchange,
                                 .exchange_self = x};
    const struct fsdp_save how = {.size = sizeof(how),
                                  .form = FSDP_SAVE_SHARDED,
                                  .directory = b->directory};
    const struct checkpoint_request request = {
        .env = &env,
        .save = &how,
        .world = b->ranks,
        .shards = b->ranks,
        .replicas = 1,
        .layout = "flat",
        .optimizer = "adamw",
        .table = &b->table,
        .source = {x->slice, TENSORS, give, x}};
    struct checkpoint_saving *s;

    if (checkpoint_begin(&request, &s) != FSDP_OK) {
        b->bad = true;
        return NULL;
    }
    checkpoint_write(s);
    b->bad = checkpoint_finish(&env, s) != FSDP_OK || b->bad;
    return NULL;
}

/* Verified and read, as an engine does. */
static void *load_rank(void *context)
{
    struct rank *x = context;
    struct bench *b = x->b;
    struct fsdp_error error = {0};
    const struct fsdp_env env = {.size = sizeof(env),
                                 .rank = x->r,
                                 .world = b->ranks,
                                 .error = &error,
                                 .exchange = exchange,
                                 .exchange_self = x};
    const struct checkpoint_target target = {
        &b->table, {x->slice, TENSORS, give, x, NULL, 0}, take, b->remake};
    struct checkpoint *c;
    bool torn;

    if (checkpoint_load_open(&env, b->directory, &b->table, &b->table, false,
                             &c) != FSDP_OK) {
        b->bad = true;
        return NULL;
    }
    b->bad = checkpoint_replace(&env, c, &target, &torn) != FSDP_OK || b->bad;
    checkpoint_close(c);
    return NULL;
}

/* Seconds that all ranks take; less than 0: one failed. */
static double on_ranks(struct bench *b, void *(*work)(void *))
{
    static struct rank rank[MAX_RANKS];
    double began = now();

    for (uint32_t r = 0; r < b->ranks; r++) {
        uint64_t first = b->each * r / b->ranks;
        uint64_t end = b->each * (r + 1) / b->ranks;
        rank[r] = (struct rank){.b = b, .r = r};
        for (uint32_t i = 0; i < TENSORS; i++) {
            rank[r].slice[i] = (struct checkpoint_slice){i, first, end - first};
        }
        if (pthread_create(&rank[r].thread, NULL, work, &rank[r]) != 0) {
            abort(); /* the others would wait for ever */
        }
    }
    for (uint32_t r = 0; r < b->ranks; r++) {
        (void)pthread_join(rank[r].thread, NULL);
    }
    return b->bad ? -1.0 : now() - began;
}

static int compare(const void *a, const void *b)
{
    const double *x = a;
    const double *y = b;

    return *x < *y ? -1 : *x > *y;
}

static double median(double *x, uint32_t n)
{
    qsort(x, n, sizeof(*x), compare);
    return x[0] < 0.0 ? -1.0 : x[n / 2];
}

enum what {
    PLAIN_WRITE,
    SAVE,
    PLAIN_READ,
    LOAD,      /* into a model that was just sharded */
    LOAD_OVER, /* into a trained model, whose values are kept meanwhile */
    WHATS
};

static double measure(struct bench *b, enum what what, const char *file)
{
    switch (what) {
    case PLAIN_WRITE:
        return plain_write(b, file);
    case SAVE:
        return on_ranks(b, save_rank);
    case PLAIN_READ:
        return plain_read(file);
    default:
        b->remake = what == LOAD ? remake : NULL;
        return on_ranks(b, load_rank);
    }
}

static void print(const struct bench *b, double t[WHATS][MAX_TIMES],
                  const double used[WHATS], double mib, uint32_t times)
{
    static const char *const name[] = {"plain write + fsync", "save",
                                       "plain read", "load, verified",
                                       "load over trained"};

    printf(
        "%.0f MiB, %u ranks, median of %u; of plain writing, of plain reading, "
        "processor seconds a GiB\n",
        mib, b->ranks, times);
    for (uint32_t k = 0; k < WHATS; k++) {
        printf("%-19s %7.0f MiB/s  %5.2f  %5.2f  %5.2f\n", name[k],
               mib / t[k][0], t[PLAIN_WRITE][0] / t[k][0],
               t[PLAIN_READ][0] / t[k][0], used[k] * 1024.0 / mib / times);
    }
}

static int run(struct bench *b, uint32_t times)
{
    static double t[WHATS][MAX_TIMES];
    double used[WHATS] = {0};
    char file[600];
    double mib = (double)(TENSORS * b->each * sizeof(float)) / (1 << 20);
    bool good = true;

    snprintf(file, sizeof(file), "%.500s/plain", b->folder);
    for (uint32_t i = 0; i < times; i++) { /* all in turn, as the speed of disks
                                            * drifts */
        for (uint32_t k = 0; k < WHATS; k++) {
            double mark;
            if (k >= PLAIN_READ) {
                forget(file);
                (void)nftw(b->directory, forget_one, 16, FTW_PHYS);
            }
            mark = processor();
            t[k][i] = measure(b, k, file);
            used[k] += processor() - mark;
        }
        folder_erase(b->directory);
        (void)unlink(file);
    }
    for (uint32_t k = 0; k < WHATS; k++) {
        t[k][0] = median(t[k], times);
        good = good && t[k][0] > 0.0;
    }
    if (!good) {
        fprintf(stderr, "checkpoint_benchmark: %s: cannot write or read\n",
                b->folder);
        return 1;
    }
    print(b, t, used, mib, times);
    return 0;
}

int main(int argc, char **argv)
{
    static struct bench b;
    static char directory[600];
    uint64_t mib = argc > 2 ? strtoull(argv[2], NULL, 10) : 512;
    uint32_t times = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 5;
    int status;

    b.folder = argc > 1 ? argv[1] : ".";
    b.directory = directory;
    b.ranks = argc > 4 ? (uint32_t)strtoul(argv[4], NULL, 10) : 1;
    snprintf(directory, sizeof(directory), "%.500s/checkpoints", b.folder);
    b.each = mib * (1 << 18) / TENSORS;
    b.data = malloc(TENSORS * b.each * sizeof(*b.data) + 1);
    if (!b.data || times == 0 || times > MAX_TIMES || mib == 0 ||
        b.ranks == 0 || b.ranks > MAX_RANKS ||
        pthread_barrier_init(&b.meet, NULL, b.ranks) != 0) {
        fprintf(stderr, "usage: checkpoint_benchmark FOLDER [MIB [TIMES "
                        "[RANKS]]]\n");
        free(b.data);
        return 64;
    }
    for (uint64_t i = 0; i < TENSORS * b.each; i++) {
        b.data[i] = (float)(i * 2654435761u % 1000003u);
    }
    for (uint32_t i = 0; i < TENSORS; i++) {
        char name[32];
        snprintf(name, sizeof(name), "tensor.%u", i);
        if (checkpoint_table_add(&b.table, name, 1, &b.each, false, NULL) !=
            FSDP_OK) {
            return 1;
        }
    }
    status = run(&b, times);
    checkpoint_table_release(&b.table);
    free(b.data);
    return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_benchmark.c - how fast a rank's shards are saved and loaded,
 * against plain writing with a flush, and plain reading, of as many bytes on
 * the same disk: what dd does. Prints medians; bounds nothing.
 *
 * usage: checkpoint_benchmark FOLDER [MIB [TIMES]]
 */
#include "checkpoint.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    TENSORS = 24,
    MAX_TIMES = 64,
    BLOCK = 1 << 20
};

struct bench {
    const char *folder;
    struct checkpoint_table table;
    struct checkpoint_slice slice[TENSORS];
    uint64_t each; /* elements of a tensor */
    float *data;
};

static double now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Of all threads, as others may be using this machine too. */
static double processor(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int exchange(void *self, const void *mine, uint64_t bytes, void *all)
{
    (void)self;
    memcpy(all, mine, bytes);
    return FSDP_OK;
}

static int give(void *context, uint32_t i, uint64_t at, uint64_t n, float *to)
{
    const struct bench *b = context;

    memcpy(to, b->data + i * b->each + at, n * sizeof *to);
    return FSDP_OK;
}

static int erase(const char *path, const struct stat *s, int type,
                 struct FTW *ftw)
{
    (void)s;
    (void)type;
    (void)ftw;
    return remove(path);
}

/* Pages that are in memory are written, and those of a file forgotten. */
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
        n = read(fd, buffer, sizeof buffer);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return n == 0 ? now() - began : -1.0;
}

static double save(struct bench *b, const char *directory)
{
    struct fsdp_error error = {0};
    const struct fsdp_env env = {
        .size = sizeof env, .world = 1, .error = &error, .exchange = exchange};
    const struct fsdp_save how = {
        .size = sizeof how, .form = FSDP_SAVE_SHARDED, .directory = directory};
    const struct checkpoint_request request = {
        .env = &env,
        .save = &how,
        .world = 1,
        .shards = 1,
        .replicas = 1,
        .layout = "flat",
        .optimizer = "adamw",
        .table = &b->table,
        .source = {b->slice, TENSORS, give, b}};
    struct checkpoint_saving *s;
    double began = now();

    if (checkpoint_begin(&request, &s) != FSDP_OK) {
        return -1.0;
    }
    checkpoint_write(s);
    return checkpoint_finish(&env, s) == FSDP_OK ? now() - began : -1.0;
}

/* Verified and read, as an engine does. */
static double load(struct bench *b, const char *directory)
{
    struct fsdp_error error = {0};
    const struct fsdp_env env = {
        .size = sizeof env, .world = 1, .error = &error, .exchange = exchange};
    struct checkpoint *c;
    char why[CHECKPOINT_WHY_BYTES];
    double began = now();
    bool good = checkpoint_load_open(&env, directory, &b->table, &b->table,
                                     &c) == FSDP_OK;

    for (uint32_t i = 0; good && i < TENSORS; i++) {
        good = checkpoint_read(c, b->table.entry[i].name, 0, b->each,
                               b->data + i * b->each, why) == FSDP_OK;
    }
    if (good) {
        checkpoint_close(c);
    }
    return good ? now() - began : -1.0;
}

static int compare(const void *a, const void *b)
{
    const double *x = a;
    const double *y = b;

    return *x < *y ? -1 : *x > *y;
}

static double median(double *x, uint32_t n)
{
    qsort(x, n, sizeof *x, compare);
    return x[0] < 0.0 ? -1.0 : x[n / 2];
}

static int run(struct bench *b, uint32_t times)
{
    double t[4][MAX_TIMES];
    double used[4] = {0};
    double mark;
    char file[600];
    char directory[600];
    double mib = (double)(TENSORS * b->each * sizeof(float)) / (1 << 20);

    (void)snprintf(file, sizeof file, "%.500s/plain", b->folder);
    (void)snprintf(directory, sizeof directory, "%.500s/checkpoints",
                   b->folder);
    for (uint32_t i = 0; i < times; i++) { /* turn about: disks drift */
        mark = processor();
        t[0][i] = plain_write(b, file);
        used[0] += processor() - mark;
        mark = processor();
        t[1][i] = save(b, directory);
        used[1] += processor() - mark;
        forget(file);
        (void)nftw(directory, forget_one, 16, FTW_PHYS);
        mark = processor();
        t[2][i] = plain_read(file);
        used[2] += processor() - mark;
        mark = processor();
        t[3][i] = load(b, directory);
        used[3] += processor() - mark;
        (void)nftw(directory, erase, 16, FTW_DEPTH | FTW_PHYS);
        (void)unlink(file);
    }
    for (uint32_t k = 0; k < 4; k++) {
        t[k][0] = median(t[k], times);
        used[k] *= 1024.0 / mib / times;
    }
    if (t[0][0] <= 0 || t[1][0] <= 0 || t[2][0] <= 0 || t[3][0] <= 0) {
        fprintf(stderr, "checkpoint_benchmark: %s: cannot write or read\n",
                b->folder);
        return 1;
    }
    printf("%.0f MiB, median of %u\n", mib, times);
    printf("plain write + fsync %8.0f MiB/s\n", mib / t[0][0]);
    printf("save                %8.0f MiB/s   %.2f of it\n", mib / t[1][0],
           t[0][0] / t[1][0]);
    printf("plain read          %8.0f MiB/s\n", mib / t[2][0]);
    printf("load, verified      %8.0f MiB/s   %.2f of it\n", mib / t[3][0],
           t[2][0] / t[3][0]);
    printf("processor seconds a GiB, all threads: %.2f, %.2f; %.2f, %.2f\n",
           used[0], used[1], used[2], used[3]);
    return 0;
}

int main(int argc, char **argv)
{
    struct bench b = {.folder = argc > 1 ? argv[1] : "."};
    uint64_t mib = argc > 2 ? strtoull(argv[2], NULL, 10) : 512;
    uint32_t times = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 5;
    int status;

    b.each = mib * (1 << 18) / TENSORS;
    b.data = malloc(TENSORS * b.each * sizeof *b.data + 1);
    if (!b.data || times == 0 || times > MAX_TIMES || mib == 0) {
        fprintf(stderr, "usage: checkpoint_benchmark FOLDER [MIB [TIMES]]\n");
        free(b.data);
        return 64;
    }
    for (uint64_t i = 0; i < TENSORS * b.each; i++) {
        b.data[i] = (float)(i * 2654435761u % 1000003u);
    }
    for (uint32_t i = 0; i < TENSORS; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "tensor.%u", i);
        if (checkpoint_table_add(&b.table, name, 1, &b.each, false, NULL) !=
            FSDP_OK) {
            return 1;
        }
        b.slice[i] = (struct checkpoint_slice){i, 0, b.each};
    }
    status = run(&b, times);
    checkpoint_table_release(&b.table);
    free(b.data);
    return status;
}

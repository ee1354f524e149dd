/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_watch.c - the memory that the ranks of a host share, and time.
 *
 * The memory is a memfd of the first rank of the host, which the others open
 * through /proc: nothing has a name that could be left behind.
 */
#include "cuda_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum {
    SPINS = 2000,     /* looks before the processor is given away */
    LOOK_AROUND = 64, /* looks after which others are looked at */
    PATIENCE_S = 60,
    MOST_RANKS = CUDA_COUNTED,
};

/* What a rank tells the others about itself. */
struct card {
    uint64_t host; /* a hash of what two ranks of one host have in common */
    int32_t pid, fd;
};

/* Shared by the ranks of a host. */
struct board {
    _Atomic uint32_t aborted;
    _Atomic uint32_t left[MOST_RANKS]; /* in good order */
    struct cuda_counters counters[CUDA_COUNTERS];
};

struct cuda_watch {
    struct board *board;
    struct card *card; /* [world] */
    uint32_t world, rank;
    uint32_t locals, local_rank;
    int64_t patience_ms;
};

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int fail(const struct fsdp_env *env, int status, const char *message)
{
    struct fsdp_error *e = env->error;

    if (e && e->status == FSDP_OK) {
        e->status = status;
        e->rank = (int32_t)env->rank;
        e->native = errno;
        snprintf(e->where, sizeof(e->where), "cuda");
        snprintf(e->message, sizeof(e->message), "%s", message);
    }
    return status;
}

/* FNV-1a. */
static uint64_t hash_text(uint64_t h, const char *text)
{
    for (; *text != '\0'; text++) {
        h = (h ^ (unsigned char)*text) * 0x100000001b3u;
    }
    return h;
}

/* Two containers on one host have process ids of their own, and count as two
 * hosts. */
static uint64_t host_identity(void)
{
    char text[256] = "";
    uint64_t h = 0xcbf29ce484222325u;
    FILE *boot = fopen("/proc/sys/kernel/random/boot_id", "re");
    ssize_t n;

    if (gethostname(text, sizeof(text) - 1) == 0) {
        h = hash_text(h, text);
    }
    if (boot) {
        if (fgets(text, sizeof(text), boot)) {
            h = hash_text(h, text);
        }
        fclose(boot);
    }
    n = readlink("/proc/self/ns/pid", text, sizeof(text) - 1);
    if (n > 0) {
        text[n] = '\0';
        h = hash_text(h, text);
    }
    return h;
}

/* The board of the host's first rank, or if that cannot be had one of one's
 * own: then only time tells. */
static int map_board(struct cuda_watch *w, int own_fd)
{
    uint32_t first = 0;
    char path[64];
    void *p;
    int fd;

    while (w->card[first].host != w->card[w->rank].host) {
        first++;
    }
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)w->card[first].pid,
             (int)w->card[first].fd);
    fd = open(path, O_RDWR | O_CLOEXEC);
    p = mmap(NULL, sizeof(*w->board), PROT_READ | PROT_WRITE, MAP_SHARED,
             fd >= 0 ? fd : own_fd, 0);
    if (fd >= 0) {
        close(fd);
    }
    if (p == MAP_FAILED) {
        return FSDP_ERR_NOMEM;
    }
    w->board = p;
    return FSDP_OK;
}

static int meet(struct cuda_watch *w, const struct fsdp_env *env, int fd)
{
    struct card mine = {host_identity(), getpid(), fd};
    uint32_t all[MOST_RANKS];
    uint32_t word = env->rank;
    int status;

    FSDP_TRY(env->exchange(env->exchange_self, &mine, sizeof(mine), w->card));
    for (uint32_t r = 0; r < w->world; r++) {
        bool local = w->card[r].host == mine.host;

        w->locals += local;
        w->local_rank += local && r < env->rank;
    }
    status = map_board(w, fd);
    /* All have opened the first one's before it closes it. */
    FSDP_TRY(env->exchange(env->exchange_self, &word, sizeof(word), all));
    return status;
}

static int64_t patience_ms(void)
{
    const char *text = getenv("FSDP_CUDA_TIMEOUT");
    double s = text ? strtod(text, NULL) : PATIENCE_S;

    return s > 0 && s < 1e6 ? (int64_t)(s * 1000) : PATIENCE_S * 1000;
}

int cuda_watch_open(const struct fsdp_env *env, struct cuda_watch **out)
{
    struct cuda_watch *w;
    int fd;
    int status;

    *out = NULL;
    if (env->world > MOST_RANKS) {
        return fail(env, FSDP_ERR_UNSUPPORTED, "more than 64 ranks");
    }
    w = calloc(1, sizeof(*w));
    if (!w) {
        return fail(env, FSDP_ERR_NOMEM, "out of host memory");
    }
    w->world = env->world;
    w->rank = env->rank;
    w->patience_ms = patience_ms();
    w->card = calloc(env->world, sizeof(*w->card));
    fd = memfd_create("fsdp-watch", MFD_CLOEXEC);
    if (!w->card || fd < 0 || ftruncate(fd, sizeof(*w->board)) != 0) {
        status = fail(env, FSDP_ERR_NOMEM, "no shared memory");
    } else {
        status = meet(w, env, fd);
    }
    if (fd >= 0) {
        close(fd);
    }
    if (status != FSDP_OK) {
        cuda_watch_close(w);
        return fail(env, status, "ranks did not meet");
    }
    *out = w;
    return FSDP_OK;
}

void cuda_watch_close(struct cuda_watch *w)
{
    if (w) {
        if (w->board) {
            atomic_store(&w->board->left[w->rank], 1);
            munmap(w->board, sizeof(*w->board));
        }
        free(w->card);
        free(w);
    }
}

uint64_t cuda_watch_host(const struct cuda_watch *w)
{
    return w->card[w->rank].host;
}

uint32_t cuda_watch_locals(const struct cuda_watch *w)
{
    return w->locals;
}

uint32_t cuda_watch_local_rank(const struct cuda_watch *w)
{
    return w->local_rank;
}

struct cuda_counters *cuda_watch_counters(struct cuda_watch *w, uint32_t group)
{
    return &w->board->counters[group];
}

void cuda_watch_abort(struct cuda_watch *w)
{
    atomic_store(&w->board->aborted, 1);
}

/* A rank of this host whose process has gone; -1: all are there. */
static int32_t gone(const struct cuda_watch *w)
{
    for (uint32_t r = 0; r < w->world; r++) {
        if (w->card[r].host == w->card[w->rank].host &&
            atomic_load(&w->board->left[r]) == 0 &&
            kill(w->card[r].pid, 0) != 0 && errno == ESRCH) {
            return (int32_t)r;
        }
    }
    return -1;
}

int cuda_watch_look(struct cuda_watch *w, struct cuda_wait *wait, char said[80])
{
    int64_t now;
    int32_t rank;

    wait->looks++;
    if (wait->looks < SPINS) {
        return FSDP_OK;
    }
    sched_yield();
    if (wait->looks % LOOK_AROUND != 0) {
        return FSDP_OK;
    }
    now = now_ms();
    if (wait->since_ms == 0) {
        wait->since_ms = now;
    }
    if (atomic_load(&w->board->aborted) != 0) {
        snprintf(said, 80, "another rank failed first");
        return FSDP_ERR_ABORTED;
    }
    rank = gone(w);
    if (rank >= 0) {
        snprintf(said, 80, "the process of rank %d is gone", (int)rank);
        return FSDP_ERR_ABORTED;
    }
    if (now - wait->since_ms > w->patience_ms) {
        snprintf(said, 80, "nothing has happened for %lld ms",
                 (long long)(now - wait->since_ms));
        return FSDP_ERR_TIMEOUT;
    }
    return FSDP_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plain_heap.c - a program that takes memory in every way there is, and knows
 * nothing of this suite: what the probe of the heap is tried on.
 *
 *     plain_heap WHAT
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    MIB = 1 << 20,
    THREADS = 8,
    ROUNDS = 20000
};

static void must(int is_right, const char *what)
{
    if (!is_right) {
        fprintf(stderr, "plain_heap: %s: %s\n", what, strerror(errno));
        exit(3);
    }
}

static void *filled(void *p, size_t bytes)
{
    must(p != NULL, "out of memory");
    memset(p, 1, bytes);
    __asm__ volatile("" : : "r"(p) : "memory"); /* so that it is not left out */
    return p;
}

/* 64 MiB at most, in blocks; 16 of them stay. */
static void plain(void)
{
    void *block[16];
    for (int i = 0; i < 16; i++) {
        block[i] = filled(malloc(4 * MIB), 4 * MIB);
    }
    for (int i = 4; i < 16; i++) {
        free(block[i]);
    }
}

/* Seven blocks of 2 MiB, from six functions; each is freed again. */
static void every(void)
{
    void *p[7];
    must(posix_memalign(&p[0], 4096, 2 * MIB) == 0, "posix_memalign");
    p[1] = aligned_alloc(64, 2 * MIB);
    p[2] = memalign(256, 2 * MIB);
    p[3] = valloc(2 * MIB);
    p[4] = calloc(2, MIB);
    p[5] = realloc(NULL, 2 * MIB);
    p[6] = realloc(malloc(MIB), 4 * MIB);
    p[6] = realloc(p[6], 2 * MIB);
    for (int i = 0; i < 7; i++) {
        must(p[i] != NULL, "a block");
        must(malloc_usable_size(p[i]) >= 2 * MIB, "its size");
        must(i != 0 || (uintptr_t)p[i] % 4096 == 0, "its place");
        free(p[i]);
    }
    must(posix_memalign(&p[0], 3, 8) == EINVAL, "a wrong alignment");
    volatile size_t too_many = SIZE_MAX / 2;
    errno = 0;
    must(!calloc(too_many, 4) && errno == ENOMEM, "too much");
    free(NULL);
}

/* 32 MiB past malloc, half of it given back, then 4 behind that; 8 before it
 * become 12. 16 stay. */
static void maps(void)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    int both = PROT_READ | PROT_WRITE;
    char *p = mmap(NULL, 32 * MIB, both, flags, -1, 0);
    must(p != MAP_FAILED, "mmap");
    must(munmap(p + 8 * MIB, 16 * MIB) == 0, "munmap");
    must(munmap(p + 24 * MIB, 4 * MIB) == 0, "munmap of the rest");
    p = mremap(p, 8 * MIB, 12 * MIB, MREMAP_MAYMOVE);
    must(p != MAP_FAILED, "mremap");
    memset(p, 1, 12 * MIB);
    must(mmap(p, 4 * MIB, both, flags | MAP_FIXED, -1, 0) == p, "MAP_FIXED");
    must(mmap(NULL, 1024 * (size_t)MIB, PROT_NONE, flags, -1, 0) != MAP_FAILED,
         "a reservation");
}

static void *worker(void *argument)
{
    unsigned x = 1 + (unsigned)(uintptr_t)argument;
    void *p[32] = {NULL};
    for (int i = 0; i < ROUNDS; i++) {
        x = x * 1664525 + 1013904223;
        unsigned at = x >> 27;
        if (x & 1024) {
            free(p[at]);
            p[at] = filled(malloc(x >> 18), x >> 18);
        } else {
            p[at] = realloc(p[at], 1 + (x >> 18));
            must(p[at] != NULL, "realloc");
        }
    }
    for (int i = 0; i < 32; i++) {
        free(p[i]);
    }
    return NULL;
}

/* 8 threads; each leaves nothing. A child while they are at it. */
static void threads(int with_children)
{
    void *p = filled(malloc(2 * MIB), 2 * MIB);
    pthread_t thread[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++) {
        must(pthread_create(&thread[i], NULL, worker, (void *)i) == 0,
             "a thread");
    }
    for (int i = 0; i < 20 && with_children; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            free(filled(malloc(2 * MIB), 2 * MIB));
            _exit(0);
        }
        int status = 1;
        must(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0,
             "a child");
    }
    for (int i = 0; i < THREADS; i++) {
        (void)pthread_join(thread[i], NULL);
    }
    free(p);
}

/* 60 MiB that are gone, 10 that stay, 20 more in a child. */
static void child(void)
{
    free(filled(malloc(60 * MIB), 60 * MIB));
    void *p = filled(malloc(10 * MIB), 10 * MIB);
    pid_t pid = fork();
    if (pid == 0) {
        (void)filled(malloc(20 * MIB), 20 * MIB);
        _exit(0);
    }
    int status = 1;
    must(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0, "a child");
    free(p);
}

/* A child that runs in our memory and leaves at once; 8 MiB before, 8 after. */
static void borrowed(void)
{
    void *p = filled(malloc(8 * MIB), 8 * MIB);
    pid_t pid = vfork();
    if (pid == 0) {
        _exit(0);
    }
    int status = 1;
    must(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0, "a child");
    free(filled(malloc(8 * MIB), 8 * MIB));
    free(p);
}

/* Closes everything, as daemons do, and has a file of its own there. */
static void closes(void)
{
    (void)filled(malloc(4 * MIB), 4 * MIB);
    for (int fd = 3; fd < 1024; fd++) {
        (void)close(fd);
    }
    for (int i = 0; i < 600; i++) {
        must(open("mine", O_RDWR | O_CREAT | O_APPEND, 0666) >= 0, "a file");
    }
    (void)filled(malloc(40 * MIB), 40 * MIB);
}

static void marks(void)
{
    void (*mark)(const char *) = NULL;
    *(void **)(void *)&mark = dlsym(RTLD_DEFAULT, "fsdp_probe_mark");
    must(mark != NULL, "no probe");
    mark("begin");
    free(filled(malloc(8 * MIB), 8 * MIB));
    mark("after 8 MiB");
    free(filled(malloc(3 * MIB), 3 * MIB));
    mark("after 3 MiB");
}

int main(int argc, char **argv)
{
    const char *what = argc == 2 ? argv[1] : "";
    if (strcmp(what, "plain") == 0) {
        plain();
    } else if (strcmp(what, "every") == 0) {
        every();
    } else if (strcmp(what, "maps") == 0) {
        maps();
    } else if (strcmp(what, "threads") == 0) {
        threads(0);
    } else if (strcmp(what, "children") == 0) {
        threads(1);
    } else if (strcmp(what, "child") == 0) {
        child();
    } else if (strcmp(what, "borrowed") == 0) {
        borrowed();
    } else if (strcmp(what, "closes") == 0) {
        closes();
    } else if (strcmp(what, "marks") == 0) {
        marks();
    } else if (strcmp(what, "die") == 0) {
        (void)filled(malloc(30 * MIB), 30 * MIB);
        (void)kill(getpid(), SIGKILL);
    } else {
        fputs("usage: plain_heap WHAT\n", stderr);
        return 64;
    }
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * broker_process.c - starts and ends the broker: its memory, its bells, and its
 * process.
 */
#include "broker.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    LOOK_NS = 200000,
    LAST_LOOKS = 10000, /* two seconds to come to its end */
};

static size_t whole_pages(size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);

    return (bytes + page - 1) / page * page;
}

bool broker_open(struct broker *b, const struct world_job *job)
{
    const uint32_t n = job->n_ranks;
    const size_t head = (sizeof(struct arena) + 63) / 64 * 64;
    const size_t areas_at = whole_pages(head + n * sizeof(*b->carried));
    const size_t area_bytes =
        whole_pages(sizeof(struct broker_area) + (size_t)n * WORLD_PLACE_BYTES);
    const size_t bytes = areas_at + area_bytes * n;
    void *memory;

    *b = (struct broker){.mesh = job->mesh};
    /* One mapping, so that a rank can unmap all but its own area at once. */
    memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        return false;
    }
    b->arena = arena_make(job, memory);
    b->arena->bytes = bytes;
    b->arena->spare = n < arena_cores();
    b->arena->areas_at = areas_at;
    b->arena->area_bytes = area_bytes;
    b->carried = (struct record_carried *)(void *)((char *)memory + head);
    for (uint32_t r = 0; r <= n; r++) {
        b->bell[r] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (b->bell[r] < 0) {
            while (r-- > 0) {
                (void)close(b->bell[r]);
            }
            (void)munmap(memory, bytes);
            return false;
        }
    }
    return true;
}

void broker_close(struct broker *b)
{
    for (uint32_t r = 0; r <= b->arena->n_ranks; r++) {
        (void)close(b->bell[r]);
    }
    arena_close(b->arena);
}

static _Noreturn void be_broker(struct broker *b, pid_t parent)
{
    static const int theirs[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};
    static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) {
        _exit(EXIT_FAILURE);
    }
    (void)prctl(PR_SET_DUMPABLE, 0);
    /* The broker ends when the world does, whatever signals come. */
    for (size_t i = 0; i < sizeof(theirs) / sizeof(theirs[0]); i++) {
        (void)signal(theirs[i], SIG_IGN);
    }
    for (size_t i = 0; i < sizeof(fatal) / sizeof(fatal[0]); i++) {
        (void)signal(fatal[i], SIG_DFL);
    }
    broker_serve(b);
    _exit(atomic_load(&b->arena->over) != 0 ? EXIT_SUCCESS : EXIT_FAILURE);
}

bool broker_start(struct broker *b)
{
    const pid_t parent = getpid();

    b->pid = fork();
    if (b->pid == 0) {
        be_broker(b, parent);
    }
    if (b->pid < 0) {
        b->pid = 0;
        return false;
    }
    return true;
}

/* Whether the broker's process has ended by now. */
static bool reap(struct broker *b, int options)
{
    pid_t ended;

    do {
        ended = waitpid(b->pid, NULL, options);
    } while (ended < 0 && errno == EINTR);
    b->pid = ended == 0 ? b->pid : 0;
    return ended != 0;
}

bool broker_is_lost(struct broker *b)
{
    return b->pid == 0 || reap(b, WNOHANG);
}

bool broker_end(struct broker *b)
{
    const struct timespec moment = {.tv_nsec = LOOK_NS};
    const uint64_t once = 1;
    bool good = b->pid != 0 && !reap(b, WNOHANG);

    atomic_store(&b->arena->over, 1);
    (void)!write(b->bell[b->arena->n_ranks], &once, sizeof(once));
    for (int i = 0; b->pid != 0 && !reap(b, WNOHANG); i++) {
        if (i == LAST_LOOKS) {
            (void)kill(b->pid, SIGKILL);
            good = false;
        }
        (void)nanosleep(&moment, NULL);
    }
    return good;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulated_ipc.c - TEST ONLY: memory and events that other processes open. The
 * data that they need of a process lie in a memory file of that process, which
 * they find in /proc.
 */
#include "emulated_queue.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    PAGE = 4096,
    MOST_EVENTS = 256,
    MOST_OPEN = 256,
};

/* The shared data of a process. */
struct board {
    struct emulated_shared event[MOST_EVENTS];
    struct {
        _Atomic int pid; /* the process that has opened it; 0: none */
        _Atomic size_t at;
    } opener[MOST_OPEN];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct board *board;
static int board_fd = -1;
static unsigned int n_events;

static struct board *map_board(int fd)
{
    void *p = mmap(NULL, sizeof(struct board), PROT_READ | PROT_WRITE,
                   MAP_SHARED, fd, 0);

    return p != MAP_FAILED ? p : NULL;
}

/* This process's. */
static bool have_board(void)
{
    pthread_mutex_lock(&lock);
    if (!board) {
        board_fd = memfd_create("emulated-ipc", MFD_CLOEXEC);
        if (board_fd >= 0 && ftruncate(board_fd, sizeof(*board)) == 0) {
            board = map_board(board_fd);
        }
    }
    pthread_mutex_unlock(&lock);
    return board != NULL;
}

static int open_file(int pid, int fd)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
    return open(path, O_RDWR | O_CLOEXEC);
}

static struct board *open_board(int pid, int fd)
{
    int own = open_file(pid, fd);
    struct board *b = own >= 0 ? map_board(own) : NULL;

    if (own >= 0) {
        close(own);
    }
    return b;
}

/* ---- Events ------------------------------------------------------------ */

struct event_card {
    int pid, fd, number;
};

struct emulated_shared *emulated_ipc_event(void)
{
    struct emulated_shared *e = NULL;

    if (have_board()) {
        pthread_mutex_lock(&lock);
        for (int i = 0; i < MOST_EVENTS && !e; i++) {
            e = &board->event[n_events++ % MOST_EVENTS];
            e = atomic_load(&e->alive) == 0 ? e : NULL;
        }
        if (e) {
            atomic_store(&e->recorded, 0);
            atomic_store(&e->done, 0);
            atomic_store(&e->alive, 1);
        }
        pthread_mutex_unlock(&lock);
    }
    return e;
}

cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t *handle,
                                  cudaEvent_t event)
{
    struct event_card card = {getpid(), board_fd, 0};

    if (!handle) {
        return emulated_say(cudaErrorInvalidValue);
    }
    if (!event || !event->alive || !event->shared || event->opened) {
        return emulated_say(cudaErrorInvalidResourceHandle);
    }
    card.number = (int)(event->shared - board->event);
    memset(handle, 0, sizeof(*handle));
    memcpy(handle->reserved, &card, sizeof(card));
    return emulated_say(cudaSuccess);
}

cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *event,
                                   cudaIpcEventHandle_t handle)
{
    struct event_card card;
    struct board *theirs;
    cudaEvent_t e;

    memcpy(&card, handle.reserved, sizeof(card));
    if (!event || card.number < 0 || card.number >= MOST_EVENTS) {
        return emulated_say(cudaErrorInvalidValue);
    }
    if (card.pid == getpid()) {
        return emulated_say(cudaErrorDeviceUninitialized);
    }
    theirs = open_board(card.pid, card.fd);
    if (!theirs || atomic_load(&theirs->event[card.number].alive) == 0) {
        return emulated_say(cudaErrorInvalidValue);
    }
    e = calloc(1, sizeof(*e));
    if (!e) {
        return emulated_say(cudaErrorMemoryAllocation);
    }
    e->alive = e->opened = true;
    e->device = emulated_device();
    e->shared = &theirs->event[card.number];
    *event = e;
    return emulated_say(cudaSuccess);
}

/* ---- Memory ------------------------------------------------------------ */

struct memory_card {
    int pid, fd, board;
    size_t at, bytes;
    uint64_t shared;
};

_Static_assert(sizeof(struct memory_card) <= sizeof(cudaIpcMemHandle_t),
               "a handle has room for it");

/* The memory that this process has opened, so that it can close it. */
static struct {
    char *p, *map;
    size_t mapped;
    struct memory_card card;
    struct board *theirs;
    int users, slot;
} opened[MOST_OPEN];

bool emulated_ipc_opened(size_t at)
{
    bool any = false;

    for (int i = 0; i < MOST_OPEN && board; i++) {
        int pid = atomic_load(&board->opener[i].pid);

        any = any || (pid != 0 && atomic_load(&board->opener[i].at) == at &&
                      kill(pid, 0) == 0);
    }
    return any;
}

bool emulated_ipc_holds(const void *p, size_t bytes)
{
    const char *c = p;
    bool holds = false;

    pthread_mutex_lock(&lock);
    for (int i = 0; i < MOST_OPEN && !holds; i++) {
        holds = opened[i].users > 0 && c >= opened[i].p &&
                c + bytes <= opened[i].p + opened[i].card.bytes;
    }
    pthread_mutex_unlock(&lock);
    return holds;
}

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *p)
{
    struct emulated_block b;
    struct memory_card card;

    if (emulated_broken() != cudaSuccess) {
        return emulated_broken();
    }
    if (!handle || !have_board() || !emulated_memory_find(p, &b)) {
        return emulated_say(cudaErrorInvalidValue);
    }
    card =
        (struct memory_card){getpid(), b.fd, board_fd, b.at, b.bytes, b.shared};
    memset(handle, 0, sizeof(*handle));
    memcpy(handle->reserved, &card, sizeof(card));
    return emulated_say(cudaSuccess);
}

/* Tells its owner. */
static bool sign(int i)
{
    struct board *b = opened[i].theirs;

    for (int s = 0; s < MOST_OPEN; s++) {
        int nobody = 0;

        if (atomic_compare_exchange_strong(&b->opener[s].pid, &nobody,
                                           getpid())) {
            atomic_store(&b->opener[s].at, opened[i].card.at);
            opened[i].slot = s;
            return true;
        }
    }
    return false;
}

static cudaError_t open_memory(int i, const struct memory_card *card)
{
    size_t from = card->at / PAGE * PAGE;
    int fd = open_file(card->pid, card->fd);
    void *map;

    opened[i].card = *card;
    opened[i].mapped = card->at + card->bytes - from;
    opened[i].theirs = open_board(card->pid, card->board);
    if (fd < 0 || !opened[i].theirs || !sign(i)) {
        return cudaErrorMapBufferObjectFailed;
    }
    map = mmap(NULL, opened[i].mapped, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
               (off_t)from);
    close(fd);
    if (map == MAP_FAILED) {
        return cudaErrorMapBufferObjectFailed;
    }
    opened[i].map = map;
    opened[i].p = opened[i].map + (card->at - from);
    opened[i].users = 1;
    return cudaSuccess;
}

/* A process cannot open its own memory. Opened blocks are counted; of a block
 * that two small allocations share, the second cannot be opened. */
cudaError_t cudaIpcOpenMemHandle(void **p, cudaIpcMemHandle_t handle,
                                 unsigned int flags)
{
    struct memory_card card;
    cudaError_t status = cudaErrorMapBufferObjectFailed;
    int place = MOST_OPEN;

    memcpy(&card, handle.reserved, sizeof(card));
    if (!p || flags != cudaIpcMemLazyEnablePeerAccess) {
        return emulated_say(cudaErrorInvalidValue);
    }
    if (card.pid == getpid()) {
        return emulated_say(cudaErrorDeviceUninitialized);
    }
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MOST_OPEN && status != cudaErrorAlreadyMapped; i++) {
        if (opened[i].users == 0) {
            place = i < place ? i : place;
        } else if (opened[i].card.pid == card.pid &&
                   opened[i].card.shared == card.shared) {
            status = cudaErrorAlreadyMapped;
            if (opened[i].card.at == card.at) {
                opened[i].users++;
                *p = opened[i].p;
                status = cudaSuccess;
                place = MOST_OPEN;
                break;
            }
        }
    }
    if (status == cudaErrorMapBufferObjectFailed && place < MOST_OPEN) {
        status = open_memory(place, &card);
        *p = opened[place].p;
    }
    pthread_mutex_unlock(&lock);
    return emulated_say(status);
}

/* It is not promised that this waits for work that reads or writes the
 * memory. */
cudaError_t cudaIpcCloseMemHandle(void *p)
{
    cudaError_t status = cudaErrorInvalidValue;

    if (emulated_pending()) {
        emulated_undefined("memory of another process that is closed before "
                           "the work on it has ended");
    }
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MOST_OPEN && status != cudaSuccess; i++) {
        if (opened[i].users > 0 && opened[i].p == (char *)p) {
            status = cudaSuccess;
            if (--opened[i].users == 0) {
                munmap(opened[i].map, opened[i].mapped);
                atomic_store(&opened[i].theirs->opener[opened[i].slot].pid, 0);
                munmap(opened[i].theirs, sizeof(*opened[i].theirs));
            }
        }
    }
    pthread_mutex_unlock(&lock);
    return emulated_say(status);
}

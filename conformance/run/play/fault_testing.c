/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fault_testing.c - stands between ranks and their allocations: malloc and its
 * family (--wrap), pthread_create, and the alloc of a device.
 */
#include "run/play/fault_testing.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum {
    MAX_RANKS = 4,
    MAX_POINTERS = 1 << 15
};

static struct {
    uint32_t what, rank;
    uint64_t nth;
} fault;

/* Allocations of the rank at fault, by all of its threads. */
static _Atomic uint64_t n_asked;
static atomic_bool has_failed;

/* The rank that this thread plays, counted from 1; 0: none. */
static _Thread_local uint32_t playing;

static bool fails(uint32_t what)
{
    if (fault.what != what || playing != fault.rank + 1 ||
        ++n_asked != fault.nth) {
        return false;
    }
    has_failed = true;
    return true;
}

void fault_set(uint32_t what, uint32_t rank, uint64_t nth)
{
    fault.what = what;
    fault.rank = rank;
    fault.nth = nth;
    n_asked = 0;
    has_failed = false;
}

bool fault_happened(void)
{
    return has_failed;
}

void fault_play(uint32_t rank)
{
    playing = rank + 1;
}

void fault_play_nobody(void)
{
    playing = 0;
}

/* ---- malloc and its family --------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *pointers[MAX_POINTERS]; /* allocated by ranks, not yet freed */
static uint32_t n_pointers;

static void *note(void *p)
{
    if (p && playing) {
        pthread_mutex_lock(&lock);
        if (n_pointers < MAX_POINTERS) {
            pointers[n_pointers++] = p;
        }
        pthread_mutex_unlock(&lock);
    }
    return p;
}

static void forget(const void *p)
{
    if (!p) {
        return;
    }
    pthread_mutex_lock(&lock);
    for (uint32_t i = n_pointers; i-- > 0;) {
        if (pointers[i] == p) {
            pointers[i] = pointers[--n_pointers];
            break;
        }
    }
    pthread_mutex_unlock(&lock);
}

static bool out_of_memory(void)
{
    bool yes = fails(FAULT_MEMORY);

    if (yes) {
        errno = ENOMEM;
    }
    return yes;
}

/* Weak, so that a test that was linked without --wrap can say so. The
 * linker makes these names: NOLINTBEGIN(bugprone-reserved-identifier,
 * cert-dcl37-c,cert-dcl51-cpp,readability-identifier-naming) */
#define WEAK __attribute__((weak))
WEAK void *__real_malloc(size_t bytes);
WEAK void *__real_calloc(size_t n, size_t bytes);
WEAK void *__real_realloc(void *p, size_t bytes);
WEAK void *__real_aligned_alloc(size_t alignment, size_t bytes);
WEAK void __real_free(void *p);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_realloc(void *p, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
void __wrap_free(void *p);
WEAK int __real_pthread_create(pthread_t *thread, const pthread_attr_t *how,
                               void *(*start)(void *), void *context);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *how,
                          void *(*start)(void *), void *context);
/* NOLINTEND(bugprone-reserved-identifier,
 * cert-dcl37-c,cert-dcl51-cpp,readability-identifier-naming) */

bool fault_is_wrapped(void)
{
    return __real_malloc != NULL;
}

uint32_t fault_n_left(void)
{
    return n_pointers;
}

void *__wrap_malloc(size_t bytes)
{
    return out_of_memory() ? NULL : note(__real_malloc(bytes));
}

void *__wrap_calloc(size_t n, size_t bytes)
{
    return out_of_memory() ? NULL : note(__real_calloc(n, bytes));
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
    return out_of_memory() ? NULL
                           : note(__real_aligned_alloc(alignment, bytes));
}

void *__wrap_realloc(void *p, size_t bytes)
{
    if (out_of_memory()) {
        return NULL;
    }
    forget(p); /* first: another thread may get the same address */
    return note(__real_realloc(p, bytes));
}

void __wrap_free(void *p)
{
    forget(p);
    __real_free(p);
}

/* ---- Threads of a rank ------------------------------------------------- */

struct start {
    void *(*start)(void *);
    void *context;
    uint32_t playing;
};

static void *play(void *context)
{
    struct start s = *(struct start *)context;

    __real_free(context);
    playing = s.playing;
    return s.start(s.context);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *how,
                          void *(*start)(void *), void *context)
{
    struct start *s = __real_malloc(sizeof(*s));
    int status;

    if (!s) {
        return EAGAIN;
    }
    *s = (struct start){start, context, playing};
    status = __real_pthread_create(thread, how, play, s);
    if (status != 0) {
        __real_free(s);
    }
    return status;
}

/* ---- The device's alloc ------------------------------------------------ */

static struct lender {
    struct fsdp_device device; /* the real one, but for alloc */
    const struct fsdp_device *real;
} lenders[MAX_RANKS];

static struct fsdp_engine bringer; /* of the device, as it was */

static int lent_alloc(void *self, uint64_t bytes, void **out)
{
    const struct fsdp_device *real = lenders[playing - 1].real;

    *out = NULL;
    return fails(FAULT_DEVICE) ? FSDP_ERR_NOMEM : real->alloc(self, bytes, out);
}

static int open_lender(struct fsdp_env *env)
{
    struct lender *l = &lenders[playing - 1];
    int status = bringer.open(env);

    l->real = NULL;
    if (status == FSDP_OK) {
        l->real = env->device;
        l->device = *env->device;
        l->device.alloc = lent_alloc;
        env->device = &l->device;
    }
    return status;
}

static void close_lender(struct fsdp_env *env)
{
    if (lenders[playing - 1].real) {
        env->device = lenders[playing - 1].real;
    }
    bringer.close(env);
}

void fault_engine(struct fsdp_engine *engine)
{
    bringer = *engine;
    engine->open = open_lender;
    engine->close = close_lender;
}

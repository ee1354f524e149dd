/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulated_guard.c - TEST ONLY: work of the device that touches what is none
 * of its memory ends, and an error sticks, as with a GPU. Around each
 * allocation lie pages that are not there. Kernels are compiled so that an
 * access where its type must not lie is an illegal instruction, or a trap.
 */
#include "emulated_block.h"
#include "emulated_queue.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>

static _Thread_local volatile bool inside;
static _Thread_local cudaError_t trapped;
static _Thread_local sigjmp_buf back;

static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGTRAP};
enum {
    N_SIGNALS = sizeof(signals) / sizeof(signals[0])
};
static struct sigaction before[N_SIGNALS];

void emulated_trap(cudaError_t error)
{
    if (!inside) {
        abort();
    }
    trapped = trapped == cudaSuccess ? error : trapped; /* the first */
    emulated_leave_block(); /* comes back here by run_grid, if it was one */
    siglongjmp(back, 1);
}

static void handler(int signal, siginfo_t *info, void *context)
{
    bool sent = info->si_code <= 0; /* by a process, not by an access */

    (void)context;
    if (inside && !sent) {
        emulated_trap(signal == SIGILL || signal == SIGTRAP
                          ? cudaErrorMisalignedAddress
                          : cudaErrorIllegalAddress);
    }
    /* The signal is for another handler: it is restored, and the signal comes
     * again. */
    for (int i = 0; i < N_SIGNALS; i++) {
        if (signals[i] == signal) {
            (void)sigaction(signal, &before[i], NULL);
        }
    }
    if (sent) {
        (void)raise(signal);
    }
}

/* While a kernel runs, and no longer: they are the process's, of which an
 * engine's calls change nothing. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned running;

static void take_signals(void)
{
    struct sigaction action = {.sa_sigaction = handler,
                               .sa_flags = SA_NODEFER | SA_SIGINFO};

    sigemptyset(&action.sa_mask);
    (void)pthread_mutex_lock(&lock);
    for (int i = 0; running == 0 && i < N_SIGNALS; i++) {
        (void)sigaction(signals[i], &action, &before[i]);
    }
    running++;
    (void)pthread_mutex_unlock(&lock);
}

static void give_signals_back(void)
{
    (void)pthread_mutex_lock(&lock);
    running--;
    for (int i = 0; running == 0 && i < N_SIGNALS; i++) {
        (void)sigaction(signals[i], &before[i], NULL);
    }
    (void)pthread_mutex_unlock(&lock);
}

bool emulated_guarded(void (*work)(void *), void *argument)
{
    take_signals();
    emulated_memory_open();
    trapped = cudaSuccess;
    if (sigsetjmp(back, 0) == 0) {
        inside = true;
        work(argument);
    }
    inside = false;
    emulated_memory_close();
    give_signals_back();
    if (trapped != cudaSuccess) {
        emulated_break(trapped);
    }
    return trapped == cudaSuccess;
}

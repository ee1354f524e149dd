/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process_mutants.c - engines that change the state of their process and leave
 * it changed.
 */
#include "mutants/mutant_kit.h"

#include <fenv.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* Lets the processor flush subnormal numbers to zero, if this file knows how;
 * else round towards zero. */
static void compute_roughly(void)
{
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);
#elif defined(__aarch64__)
    uint64_t mode;

    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    mode |= UINT64_C(1) << 24;
    __asm__ volatile("msr fpcr, %0" : : "r"(mode));
#else
    (void)fesetround(FE_TOWARDZERO);
#endif
}

static int flushes_to_zero(struct fsdp_sharded *s, struct fsdp_step *how)
{
    int status = mutant_real.engine.step(s, how);

    compute_roughly();
    return status;
}

/* Changes the rounding behind the last step, where nothing is compared any
 * more. */
static void rounds_upwards(struct fsdp_sharded *s)
{
    mutant_real.engine.destroy(s);
    (void)fesetround(FE_UPWARD);
}

static void ignore_terminal(void)
{
    (void)signal(SIGHUP, SIG_IGN);
}

static void block_signal(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
}

static void go_elsewhere(void)
{
    (void)!chdir("/");
}

static void set_variable(void)
{
    (void)setenv("OMP_NUM_THREADS", "1000", 1);
}

static void open_files(void)
{
    (void)umask(0);
}

static void lower_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_STACK, &limit) == 0) {
        limit.rlim_cur = limit.rlim_cur == 4 << 20 ? 5 << 20 : 4 << 20;
        (void)setrlimit(RLIMIT_STACK, &limit);
    }
}

#define KEPT .kills = "run.process-kept", .shows = {.in = mutant_plain, 1}

const struct mutant process_mutants[] = {
    {.name = "leaves-flush-to-zero",
     .text = "subnormal numbers are flushed to zero from the first step on, "
             "in the whole process",
     .evidence = "pytorch/pytorch#78047: libraries linked with -ffast-math",
     KEPT,
     .calls.step = flushes_to_zero},
    {.name = "leaves-folder",
     .text = "the working folder is another one after the first step",
     .evidence = "design: paths of others are relative",
     KEPT,
     .behind_zero = go_elsewhere},
    {.name = "leaves-handler",
     .text = "SIGHUP is ignored after the first step",
     .evidence = "a library that handles signals takes them from the program",
     KEPT,
     .behind_zero = ignore_terminal},
    {.name = "leaves-limit",
     .text = "the soft limit of the stack is another one after the first step",
     .evidence = "design: threads that start later have another stack",
     KEPT,
     .behind_zero = lower_limit},
    {.name = "leaves-mask",
     .text = "SIGUSR1 is blocked after the first step",
     .evidence = "a thread that is started later inherits the mask",
     KEPT,
     .behind_zero = block_signal},
    {.name = "leaves-rounding",
     .text = "destroy leaves the process rounding upwards",
     .evidence = "design: whoever computes next is wrong",
     KEPT,
     .calls.destroy = rounds_upwards},
    {.name = "leaves-umask",
     .text = "files are made for everybody after the first step",
     .evidence = "design: the umask is the process's",
     KEPT,
     .behind_zero = open_files},
    {.name = "leaves-variable",
     .text = "OMP_NUM_THREADS is set after the first step",
     .evidence = "environment variables steer other libraries",
     KEPT,
     .behind_zero = set_variable},
    {0},
};

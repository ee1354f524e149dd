/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulated_block.c - TEST ONLY: fibers, barriers, and the order of both.
 */
#include "emulated_block.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#ifndef __x86_64__
#    include <ucontext.h>
#endif

enum {
    MOST_THREADS = 1024,
    WARP = 32,
    STACK = 64 * 1024,
    /* From one stack to the next. Were it a power of two, what all fibers keep
     * would lie in the same few sets of a cache, and each switch would miss. */
    PITCH = STACK + 4096 + 192,
};

/* How a fiber is left and come back to. On x86-64 by hand: swapcontext asks
 * the kernel for the signal mask each time. */
#ifdef __x86_64__
struct context {
    void *stack;
};

/* Saves the registers that a function has to save, and changes to the other
 * stack. It leaves by a jump: a return to another place than the last call is
 * always predicted wrongly. */
void emulated_switch(struct context *from, struct context *to);
__asm__(".text\n"
        ".globl emulated_switch\n"
        ".hidden emulated_switch\n"
        ".type emulated_switch, @function\n"
        "emulated_switch:\n"
        "    pushq %rbp\n    pushq %rbx\n    pushq %r12\n"
        "    pushq %r13\n    pushq %r14\n    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq (%rsi), %rsp\n"
        "    popq %r15\n    popq %r14\n    popq %r13\n"
        "    popq %r12\n    popq %rbx\n    popq %rbp\n"
        "    popq %rcx\n    jmpq *%rcx\n"
        ".size emulated_switch, . - emulated_switch\n");

static void context_make(struct context *c, char *stack, void (*start)(void))
{
    void **top = (void **)(void *)(stack + STACK);

    *--top = NULL; /* so that the stack is aligned as after a call */
    memcpy(--top, &start, sizeof(start)); /* ISO C has no such cast */
    top -= 6;
    c->stack = top;
}
#else
struct context {
    ucontext_t u;
};

static void emulated_switch(struct context *from, struct context *to)
{
    swapcontext(&from->u, &to->u);
}

static void context_make(struct context *c, char *stack, void (*start)(void))
{
    getcontext(&c->u);
    c->u.uc_stack.ss_sp = stack;
    c->u.uc_stack.ss_size = STACK;
    c->u.uc_link = NULL;
    makecontext(&c->u, start, 0);
}
#endif

struct fiber {
    struct context context;
    bool made, ended;
    int waits;         /* at no barrier, of the block, of the warp: 0, 1, 2 */
    uint32_t given[2]; /* to the other lanes, in turns */
    unsigned int gave; /* how often, in this block */
};

/* The state of one thread of the CPU. */
struct machine {
    char *stacks; /* of all fibers, one behind the other */
    struct context main;
    struct fiber fiber[MOST_THREADS];
    unsigned int n, now;
    bool backward;         /* the order of the threads of this block */
    bool running, trapped; /* a thread runs; one has done what it must not */
    void (*run)(void *);
    void *kernel;
};

__thread struct uint3 threadIdx, blockIdx, blockDim, gridDim;
static _Thread_local struct machine *machine;

/* The first thread from place i on, in the order of this block, that can run;
 * n: none. */
static unsigned int next_from(const struct machine *m, unsigned int i)
{
    for (; i < m->n; i++) {
        unsigned int t = m->backward ? m->n - 1 - i : i;

        if (!m->fiber[t].ended && m->fiber[t].waits == 0) {
            return t;
        }
    }
    return m->n;
}

static void turn_to(struct machine *m, unsigned int t)
{
    m->now = t;
    threadIdx = (struct uint3){t, 0, 0};
}

/* The next thread's turn, or, behind the last one, run_block's. */
static void pass_on(struct machine *m)
{
    struct context *from = &m->fiber[m->now].context;
    unsigned int t =
        next_from(m, (m->backward ? m->n - 1 - m->now : m->now) + 1);

    if (t == m->n) {
        emulated_switch(from, &m->main);
    } else {
        turn_to(m, t);
        emulated_switch(from, &m->fiber[t].context);
    }
}

/* A fiber does one thread after the other: its stack is kept. */
static void fiber_main(void)
{
    for (;;) {
        struct machine *m = machine;
        struct fiber *f = &m->fiber[m->now];

        m->run(m->kernel);
        f->ended = true;
        pass_on(m);
    }
}

/* ---- Stacks ------------------------------------------------------------- */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t ends; /* with the thread of the CPU */
static bool has_key;

static void machine_release(void *self)
{
    struct machine *m = self;

    (void)munmap(m->stacks, (size_t)MOST_THREADS * PITCH);
    free(m);
    machine = NULL;
}

static void make_key(void)
{
    has_key = pthread_key_create(&ends, machine_release) == 0;
}

static char *stack_of(const struct machine *m, unsigned int t)
{
    return m->stacks + (size_t)t * PITCH;
}

/* Takes of each stack only the page that its fiber begins in: a huge page would
 * be all of 32 stacks. */
static bool take_stacks(struct machine *m)
{
    const size_t bytes = (size_t)MOST_THREADS * PITCH;
    char *stacks = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (stacks == MAP_FAILED) {
        return false;
    }
    (void)madvise(stacks, bytes, MADV_NOHUGEPAGE);
    m->stacks = stacks;
    for (unsigned int t = 0; t < MOST_THREADS; t++) {
        context_make(&m->fiber[t].context, stack_of(m, t), fiber_main);
        m->fiber[t].made = true;
    }
    return true;
}

bool emulated_block_make(void)
{
    struct machine *m;

    (void)pthread_once(&once, make_key);
    if (machine || !has_key) {
        return machine != NULL;
    }
    m = calloc(1, sizeof(*m));
    if (!m || !take_stacks(m)) {
        free(m);
        return false;
    }
    if (pthread_setspecific(ends, m) != 0) {
        machine_release(m);
        return false;
    }
    machine = m;
    return true;
}

/* ---- Blocks ------------------------------------------------------------- */

/* Each thread that can run, in turn, up to its next barrier or its end. */
static void run_threads(struct machine *m)
{
    unsigned int t = next_from(m, 0);

    if (t < m->n) {
        turn_to(m, t);
        m->running = true;
        emulated_switch(&m->main, &m->fiber[t].context);
        m->running = false;
    }
}

void emulated_leave_block(void)
{
    struct machine *m = machine;

    if (m && m->running) {
        m->trapped = true;
        emulated_switch(&m->fiber[m->now].context, &m->main);
    }
}

/* Lets threads [first, end) go on if all of them that still run wait at
 * barrier `kind`. */
static bool release(struct machine *m, unsigned int first, unsigned int end,
                    int kind)
{
    bool any = false;

    for (unsigned int t = first; t < end; t++) {
        if (m->fiber[t].ended ? kind == 2 : m->fiber[t].waits != kind) {
            return false; /* a warp waits for all of its lanes */
        }
        any = any || !m->fiber[t].ended;
    }
    for (unsigned int t = first; t < end && any; t++) {
        m->fiber[t].waits = 0;
    }
    return any;
}

static bool release_any(struct machine *m)
{
    bool any = release(m, 0, m->n, 1);

    for (unsigned int w = 0; w < m->n; w += WARP) {
        any = release(m, w, w + WARP < m->n ? w + WARP : m->n, 2) || any;
    }
    return any;
}

static bool run_block(struct machine *m, bool backward)
{
    bool running = true;

    m->backward = backward;
    for (unsigned int t = 0; t < m->n; t++) {
        m->fiber[t].ended = false;
        m->fiber[t].waits = 0;
        m->fiber[t].gave = 0;
    }
    while (running) {
        run_threads(m);
        running = !m->trapped && release_any(m);
    }
    running = true;
    for (unsigned int t = 0; t < m->n; t++) {
        if (!m->fiber[t].ended) {
            m->fiber[t].made = false; /* its stack is not as it should be */
            running = false;
        }
    }
    return running;
}

bool emulated_grid(struct dim3 grid, struct dim3 block, void (*run)(void *),
                   void *kernel)
{
    struct machine *m;

    if (block.x > MOST_THREADS || !emulated_block_make()) {
        return false;
    }
    m = machine;
    m->n = block.x;
    m->run = run;
    m->kernel = kernel;
    blockDim = (struct uint3){block.x, block.y, block.z};
    gridDim = (struct uint3){grid.x, grid.y, grid.z};
    for (unsigned int t = 0; t < m->n; t++) {
        if (!m->fiber[t].made) {
            context_make(&m->fiber[t].context, stack_of(m, t), fiber_main);
            m->fiber[t].made = true;
        }
    }
    for (unsigned int b = 0; b < grid.x; b++) {
        blockIdx = (struct uint3){b, 0, 0};
        m->trapped = false;
        if (!run_block(m, b % 2 != 0)) {
            if (!m->trapped) {
                fprintf(stderr, "emulated CUDA: threads of a block wait at "
                                "different barriers\n");
            }
            return false;
        }
    }
    return true;
}

void emulated_barrier(int warp)
{
    struct machine *m = machine;

    m->fiber[m->now].waits = warp != 0 ? 2 : 1;
    pass_on(m);
}

unsigned int emulated_lane(void)
{
    return machine->now % WARP;
}

/* Gives something to the other lanes, and waits until all have: they find it in
 * the slot that is returned. The next gift goes into the other one, which all
 * have read: a lane is two gifts ahead of none. */
static unsigned int give(struct machine *m, uint32_t mine)
{
    struct fiber *f = &m->fiber[m->now];
    unsigned int slot = f->gave++ % 2;

    f->given[slot] = mine;
    emulated_barrier(1);
    return slot;
}

uint32_t emulated_from_lane(uint32_t mine, unsigned int lane)
{
    struct machine *m = machine;
    unsigned int warp = m->now / WARP * WARP;
    unsigned int slot = give(m, mine);

    return m->fiber[warp + lane].given[slot];
}

uint32_t emulated_ballot(bool mine)
{
    struct machine *m = machine;
    unsigned int warp = m->now / WARP * WARP;
    unsigned int slot = give(m, mine);
    uint32_t all = 0;

    for (unsigned int lane = 0; lane < WARP && warp + lane < m->n; lane++) {
        all |= m->fiber[warp + lane].given[slot] << lane;
    }
    return all;
}

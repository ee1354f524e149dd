/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arith_exhaustive.c - proves a function right for all 2^32 inputs.
 *
 *     arith_exhaustive FUNCTION [--threads N]
 *
 * where the function is exp, log, tanh, rsqrt, to-bf16 or to-f16 (a cast).
 * Prints each mismatch (the first few) and the count of inputs and mismatches;
 * exits 1 if there is any mismatch. MPFR is the oracle, but it need not be
 * asked 2^32 times, for these facts are exact (no error estimate of any double
 * arithmetic enters):
 *
 * runs      All of the functions are monotonic where they are defined, and
 *           rounding is monotonic. So where consecutive inputs give the same
 *           result y, and y is right for the first and the last of them, it is
 *           right for all between.
 * mirror    tanh is odd, and rounding to nearest is too.
 * identity  0 < x - tanh(x) < x^3/3, which for x < 2^-13 is less than a quarter
 *           of the distance to the float below x: the result is x.
 * rsqrt     The value at 4^j x is 2^-j times that at x, and no result is
 *           subnormal: [1, 4) by runs, every other input by scaling.
 * kept      A cast keeps a NaN's sign and upper payload, and makes it quiet.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "arith_mpfr.h"

#define MISMATCHES_SHOWN 10
#define THREADS_MAX      256
#define CHUNK            ((uint64_t)1 << 21)

struct worker {
    const struct arith_function *function;
    struct arith_mpfr mpfr;
    uint64_t inputs;
    uint64_t mismatches;
};

/* Inputs [first, end) as bits; check counts what it covers. */
struct span {
    void (*check)(struct worker *worker, uint64_t first, uint64_t end);
    uint64_t first;
    uint64_t end;
};

#define POSITIVE_END ((uint64_t)FSDP_F32_INFINITY + 1)
#define NEGATIVE     ((uint64_t)FSDP_F32_SIGN)
#define NEGATIVE_END (NEGATIVE + POSITIVE_END)
#define ALL_END      ((uint64_t)1 << 32)
#define SPANS_MAX    9

struct job {
    pthread_mutex_t lock;
    const struct arith_function *function;
    const struct span *spans;
    uint64_t next; /* In spans[0]. */
    uint64_t inputs;
    uint64_t mismatches;
    uint64_t printed;
    struct timespec start;
};

static uint32_t compute(const struct worker *worker, uint64_t x)
{
    float y = worker->function->compute(fsdp_f32_from_bits((uint32_t)x));

    return fsdp_f32_bits(y);
}

static void expect(struct worker *worker, uint64_t x, uint32_t got,
                   uint32_t want)
{
    worker->inputs++;
    if (got == want) {
        return;
    }
    worker->mismatches++;
    if (worker->mismatches <= MISMATCHES_SHOWN) {
        printf("%s(%08x): got %08x, want %08x\n", worker->function->name,
               (unsigned int)x, got, want);
    }
}

static void expect_mpfr(struct worker *worker, uint64_t x, uint32_t got)
{
    expect(worker, x, got,
           arith_mpfr_bits(&worker->mpfr, worker->function, (uint32_t)x));
}

static void check_runs(struct worker *worker, uint64_t first, uint64_t end)
{
    uint64_t x = first;
    uint32_t y = compute(worker, x);

    while (x < end) {
        uint64_t last = x;
        uint32_t next = y;

        while (last + 1 < end) {
            next = compute(worker, last + 1);
            if (next != y) {
                break;
            }
            last++;
        }
        expect_mpfr(worker, x, y);
        if (last > x) {
            expect_mpfr(worker, last, y);
            worker->inputs += last - x - 1;
        }
        x = last + 1;
        y = next;
    }
}

static void check_nan(struct worker *worker, uint64_t first, uint64_t end)
{
    for (uint64_t x = first; x < end; x++) {
        expect(worker, x, compute(worker, x), FSDP_F32_NAN);
    }
}

static void check_infinite(struct worker *worker, uint64_t first, uint64_t end)
{
    for (uint64_t x = first; x < end; x++) {
        expect(worker, x, compute(worker, x),
               FSDP_F32_SIGN | FSDP_F32_INFINITY);
    }
}

static void check_identity(struct worker *worker, uint64_t first, uint64_t end)
{
    for (uint64_t x = first; x < end; x++) {
        expect(worker, x, compute(worker, x), (uint32_t)x);
    }
}

static void check_mirror(struct worker *worker, uint64_t first, uint64_t end)
{
    for (uint64_t x = first; x < end; x++) {
        expect(worker, x, compute(worker, x),
               compute(worker, x - NEGATIVE) | FSDP_F32_SIGN);
    }
}

/* Any positive finite input, from the one in [1, 4) that is 4^-j times it. */
static void check_rsqrt(struct worker *worker, uint64_t first, uint64_t end)
{
    for (uint64_t x = first; x < end; x++) {
        /* Subnormals become normal doubles, and 2^1022 is a power of 4. */
        uint64_t wide = fsdp_f64_bits((double)fsdp_f32_from_bits((uint32_t)x));
        int exponent = ((int)(wide >> 52) + 1) / 2 - 512;
        double base =
            fsdp_f64_from_bits(wide) * fsdp_f64_power_of_two(-2 * exponent);
        uint32_t y = compute(worker, fsdp_f32_bits((float)base));

        if (!(base >= 1.0 && base < 4.0)) {
            y = FSDP_F32_NAN; /* Cannot be; as a mismatch it would be seen. */
        }
        expect(worker, x, compute(worker, x),
               y - (uint32_t)exponent * 0x00800000u);
    }
}

static void check_kept(struct worker *worker, uint64_t first, uint64_t end)
{
    uint32_t dropped =
        worker->function->format == ARITH_BF16 ? 0xffffu : 0x1fffu;

    for (uint64_t x = first; x < end; x++) {
        expect(worker, x, compute(worker, x),
               ((uint32_t)x | 0x00400000u) & ~dropped);
    }
}

/* Each list covers every input once, and ends with a NULL check. */
static const struct span spans[ARITH_COUNT][SPANS_MAX] = {
    [ARITH_EXP] = {{check_runs, 0, POSITIVE_END},
                   {check_nan, POSITIVE_END, NEGATIVE},
                   {check_runs, NEGATIVE, NEGATIVE_END},
                   {check_nan, NEGATIVE_END, ALL_END}},
    [ARITH_LOG] = {{check_runs, 0, POSITIVE_END},
                   {check_nan, POSITIVE_END, NEGATIVE},
                   {check_infinite, NEGATIVE, NEGATIVE + 1},
                   {check_nan, NEGATIVE + 1, ALL_END}},
    [ARITH_TANH] = {{check_identity, 0, 0x39000000},
                    {check_runs, 0x39000000, POSITIVE_END},
                    {check_nan, POSITIVE_END, NEGATIVE},
                    {check_mirror, NEGATIVE, NEGATIVE_END},
                    {check_nan, NEGATIVE_END, ALL_END}},
    [ARITH_RSQRT] = {{check_runs, 0, 1},
                     {check_runs, 0x3f800000, 0x40800000},
                     {check_rsqrt, 1, 0x3f800000},
                     {check_rsqrt, 0x40800000, FSDP_F32_INFINITY},
                     {check_runs, FSDP_F32_INFINITY, POSITIVE_END},
                     {check_nan, POSITIVE_END, NEGATIVE},
                     {check_infinite, NEGATIVE, NEGATIVE + 1},
                     {check_nan, NEGATIVE + 1, ALL_END}},
    [ARITH_TO_BF16] = {{check_runs, 0, POSITIVE_END},
                       {check_kept, POSITIVE_END, NEGATIVE},
                       {check_runs, NEGATIVE, NEGATIVE_END},
                       {check_kept, NEGATIVE_END, ALL_END}},
    [ARITH_TO_F16] = {{check_runs, 0, POSITIVE_END},
                      {check_kept, POSITIVE_END, NEGATIVE},
                      {check_runs, NEGATIVE, NEGATIVE_END},
                      {check_kept, NEGATIVE_END, ALL_END}},
};

/* Takes the next chunk; 0 when there is none. */
static int take(struct job *job, struct span *chunk)
{
    int taken = 0;

    pthread_mutex_lock(&job->lock);
    if (job->spans->check) {
        *chunk = *job->spans;
        chunk->first = job->next;
        if (chunk->end - chunk->first > CHUNK) {
            chunk->end = chunk->first + CHUNK;
        }
        job->next = chunk->end;
        if (job->next == job->spans->end) {
            job->spans++;
            job->next = job->spans->first;
        }
        taken = 1;
    }
    pthread_mutex_unlock(&job->lock);
    return taken;
}

static double elapsed_seconds(const struct job *job)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - job->start.tv_sec) +
           1e-9 * (double)(now.tv_nsec - job->start.tv_nsec);
}

static void report(struct job *job, struct worker *worker)
{
    pthread_mutex_lock(&job->lock);
    job->inputs += worker->inputs;
    job->mismatches += worker->mismatches;
    worker->inputs = 0;
    worker->mismatches = 0;
    if (job->inputs * 100 / ALL_END > job->printed) {
        job->printed = job->inputs * 100 / ALL_END;
        printf("%s: %3d %%, %llu mismatches, %.0f s\n", job->function->name,
               (int)job->printed, (unsigned long long)job->mismatches,
               elapsed_seconds(job));
        fflush(stdout);
    }
    pthread_mutex_unlock(&job->lock);
}

static void *work(void *argument)
{
    struct job *job = argument;
    struct worker worker = {.function = job->function};
    struct span chunk;

    arith_mpfr_init(&worker.mpfr);
    while (take(job, &chunk)) {
        chunk.check(&worker, chunk.first, chunk.end);
        report(job, &worker);
    }
    arith_mpfr_fini(&worker.mpfr);
    return NULL;
}

static int run(struct job *job, long n_threads)
{
    pthread_t threads[THREADS_MAX];
    long started = 0;

    clock_gettime(CLOCK_MONOTONIC, &job->start);
    while (started < n_threads &&
           pthread_create(&threads[started], NULL, work, job) == 0) {
        started++;
    }
    for (long i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
    }
    printf("%s: %llu inputs, %llu mismatches, %.0f s\n", job->function->name,
           (unsigned long long)job->inputs, (unsigned long long)job->mismatches,
           elapsed_seconds(job));
    /* No thread, or a gap in the spans, must not look like a proof. */
    return job->mismatches == 0 && job->inputs == ALL_END ? 0 : 1;
}

static int find_function(const char *name)
{
    for (int i = 0; i < ARITH_COUNT; i++) {
        if (strcmp(name, arith_functions[i].name) == 0) {
            return i;
        }
    }
    return -1;
}

int main(int argc, char **argv)
{
    struct job job = {.lock = PTHREAD_MUTEX_INITIALIZER};
    int index = argc >= 2 ? find_function(argv[1]) : -1;
    long n_threads = 1;

    if (argc == 4 && strcmp(argv[2], "--threads") == 0) {
        n_threads = strtol(argv[3], NULL, 10);
    }
    if (index < 0 || (argc != 2 && argc != 4) || n_threads < 1 ||
        n_threads > THREADS_MAX) {
        fprintf(stderr, "usage: arith_exhaustive exp|log|tanh|rsqrt|"
                        "to-bf16|to-f16 [--threads N]\n");
        return 64;
    }
    if (argc == 4 && strcmp(argv[2], "--threads") != 0) {
        fprintf(stderr, "arith_exhaustive: unknown option %s\n", argv[2]);
        return 64;
    }
    job.function = &arith_functions[index];
    job.spans = spans[index];
    job.next = job.spans->first;
    return run(&job, n_threads);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_operators.c - how fast the operators of devices are: GFLOP/s of matrix
 * operators, GB/s (read and written) of the others.
 *
 * Beside each run the same operator runs on the reference's plain loops and, a
 * matrix product, in OpenBLAS on one thread, if libopenblas.so.0 is there. The
 * clock is the thread's own: what others are given does not count.
 */
#include "tools/bench/bench.h"
#include "tools/bench/bench_lab.h"
#include "tools/bench/bench_operator_list.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    MAX_LEVELS = 3
};

static const char *const level_names[MAX_LEVELS] = {"portable", "avx2",
                                                    "avx512"};

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- OpenBLAS ---------------------------------------------------------- */

/* cblas_sgemm, in its own words. */
typedef void sgemm(int order, int trans_a, int trans_b, int m, int n, int k,
                   float alpha, const float *a, int lda, const float *b,
                   int ldb, float beta, float *c, int ldc);
enum {
    ROW_MAJOR = 101,
    NO_TRANS = 111,
    TRANS = 112
};

static sgemm *open_blas(void)
{
    void *library = dlopen("libopenblas.so.0", RTLD_NOW);
    void (*set_threads)(int) = NULL;
    sgemm *function = NULL;
    void *symbol;

    if (!library) {
        return NULL;
    }
    /* ISO C has no cast from an object to a function. */
    symbol = dlsym(library, "openblas_set_num_threads");
    memcpy(&set_threads, &symbol, sizeof(symbol));
    symbol = dlsym(library, "cblas_sgemm");
    memcpy(&function, &symbol, sizeof(symbol));
    if (set_threads) {
        set_threads(1);
    }
    return function;
}

static void run_blas(sgemm *blas, const struct fsdp_op *op)
{
    int m = (int)op->dim[0];
    int n = (int)op->dim[1];
    int k = (int)op->dim[2];
    bool grad = op->kind == FSDP_OP_GEMM_GRAD;
    bool turned = (op->flags & FSDP_OP_TRANSPOSE_B) != 0;

    blas(ROW_MAJOR, grad ? TRANS : NO_TRANS, turned ? TRANS : NO_TRANS, m, n, k,
         1.0f, op->in[0].p, grad ? m : k, op->in[1].p, turned ? k : n, 0.0f,
         op->out[0].p, n);
}

/* ---- One operator ------------------------------------------------------ */

struct trial {
    struct bench_plan *plan;
    const struct fsdp_device *device, *plain;
    sgemm *blas;
    const struct bench_operator *b;
    struct fsdp_op op;
    const char *label; /* of the device */
};

/* Seconds of one run, from `repeat` of them. */
static int timed(const struct fsdp_device *device, sgemm *blas,
                 const struct fsdp_op *op, uint32_t repeat, double *out)
{
    double start = now();

    for (uint32_t i = 0; i < repeat; i++) {
        if (blas) {
            run_blas(blas, op);
        } else {
            FSDP_TRY(device->run(device->self, NULL, op));
        }
    }
    *out = (now() - start) / repeat;
    return FSDP_OK;
}

/* A repetition that takes about 10 ms, and at least one. */
static int repeats(const struct fsdp_device *device, const struct fsdp_op *op,
                   uint32_t *out)
{
    double once;

    FSDP_TRY(timed(device, NULL, op, 1, &once)); /* warms the caches */
    FSDP_TRY(timed(device, NULL, op, 1, &once));
    *out = once < 0.01 ? (uint32_t)(0.01 / (once + 1e-9)) + 1 : 1;
    return FSDP_OK;
}

/* Plain loops may take a hundred times as long: once is enough then. */
static int take_samples(struct trial *t, bool with_blas, double *own,
                        double *plain, double *blas)
{
    uint32_t n = t->plan->report.samples;
    uint32_t repeat;
    uint32_t plain_repeat;

    FSDP_TRY(repeats(t->device, &t->op, &repeat));
    FSDP_TRY(repeats(t->plain, &t->op, &plain_repeat));
    for (uint32_t i = 0; i < n; i++) {
        FSDP_TRY(timed(t->device, NULL, &t->op, repeat, &own[i]));
        if (i == 0 || plain[0] < 0.05) {
            FSDP_TRY(timed(t->plain, NULL, &t->op, plain_repeat, &plain[i]));
        } else {
            plain[i] = plain[0];
        }
        if (with_blas) {
            FSDP_TRY(timed(NULL, t->blas, &t->op, repeat, &blas[i]));
        }
    }
    return FSDP_OK;
}

static void note(struct trial *t, const char *name, double *own, double *plain,
                 double *blas)
{
    uint32_t n = t->plan->report.samples;
    double flops = bench_operator_flops(t->b);
    double work = flops > 0 ? flops : bench_operator_bytes(&t->op);
    const char *unit = flops > 0 ? "GFLOP/s" : "GB/s";
    char more[BENCH_NAME_BYTES];

    for (uint32_t i = 0; i < n; i++) {
        own[i] = work / own[i] * 1e-9;
        plain[i] = work / plain[i] * 1e-9;
    }
    bench_add(&t->plan->report, name, unit, own, n, plain, "plain loops");
    if (blas) {
        for (uint32_t i = 0; i < n; i++) {
            blas[i] = own[i] / (work / blas[i] * 1e-9);
        }
        snprintf(more, sizeof(more), "%.80s.of-openblas", name);
        bench_add(&t->plan->report, more, "ratio", blas, n, NULL, NULL);
    }
}

static int try_operator(struct trial *t, const char *name)
{
    uint32_t n = t->plan->report.samples;
    bool with_blas =
        t->blas && (t->b->kind == FSDP_OP_GEMM ||
                    (t->b->kind == FSDP_OP_GEMM_GRAD && t->b->dim[3] == 1));
    double *time = calloc(3 * (size_t)n, sizeof(*time));
    int status = FSDP_ERR_NOMEM;

    bench_progress(&t->plan->report, name);
    if (time) {
        status = bench_operator_make(t->b, &t->op);
    }
    if (status == FSDP_OK) {
        status =
            take_samples(t, with_blas, time, time + n, time + 2 * (size_t)n);
    }
    if (status == FSDP_OK) {
        note(t, name, time, time + n, with_blas ? time + 2 * (size_t)n : NULL);
    }
    bench_operator_release(&t->op);
    free(time);
    return status == FSDP_ERR_UNSUPPORTED ? FSDP_OK : status;
}

static int try_device(struct bench_plan *plan, const struct bench_lab *lab,
                      const struct bench_lab *plain, sgemm *blas,
                      const char *label)
{
    for (const struct bench_operator *b = bench_operator_list; b->name; b++) {
        char name[BENCH_NAME_BYTES];
        struct trial t = {.plan = plan,
                          .device = lab->env.device,
                          .plain = plain->env.device,
                          .blas = blas,
                          .b = b,
                          .label = label};
        snprintf(name, sizeof(name), "operator.%s.%s", b->name, label);
        if (bench_wants(&plan->report, name)) {
            FSDP_TRY(try_operator(&t, name));
        }
    }
    return FSDP_OK;
}

/* ---- All of them ------------------------------------------------------- */

/* An engine that refuses a level that there is not has levels. */
static bool has_levels(const struct fsdp_engine *engine)
{
    struct bench_lab lab;
    int status;

    setenv("FSDP_SIMD", "no-such-level", 1);
    status = bench_lab_open(&lab, engine);
    if (status == FSDP_OK) {
        bench_lab_close(&lab);
    }
    unsetenv("FSDP_SIMD");
    return status == FSDP_ERR_INVALID;
}

static int try_engine(struct bench_plan *plan,
                      const struct bench_engine *engine, sgemm *blas)
{
    bool levels = has_levels(engine->engine);
    struct bench_lab plain;
    int status = bench_lab_open(&plain, plan->plain);

    for (int i = levels ? MAX_LEVELS - 1 : 0; i >= 0 && status == FSDP_OK;
         i--) {
        char label[64];
        struct bench_lab lab;
        snprintf(label, sizeof(label), "%.40s%s%s", engine->label,
                 levels ? "." : "", levels ? level_names[i] : "");
        if (levels) {
            setenv("FSDP_SIMD", level_names[i], 1);
        }
        if (bench_lab_open(&lab, engine->engine) == FSDP_OK && lab.env.device) {
            status = try_device(plan, &lab, &plain, blas, label);
            bench_lab_close(&lab);
        }
        unsetenv("FSDP_SIMD");
    }
    bench_lab_close(&plain);
    return status;
}

int bench_operators(struct bench_plan *plan)
{
    sgemm *blas = open_blas();
    const char *before = getenv("FSDP_SIMD");
    char *kept = before ? strdup(before) : NULL;
    int status = FSDP_OK;

    for (uint32_t e = 0; e < plan->n_engines && status == FSDP_OK; e++) {
        if (plan->engine[e].engine != plan->plain &&
            plan->engine[e].place == FSDP_PLACE_HOST) {
            status = try_engine(plan, &plan->engine[e], blas);
        }
    }
    if (kept) {
        setenv("FSDP_SIMD", kept, 1);
    }
    free(kept);
    return status;
}

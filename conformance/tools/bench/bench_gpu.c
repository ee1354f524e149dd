/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_gpu.c - operators on a GPU: matrix products beside cuBLAS, the others
 * beside the rate at which the card copies, all on one stream, by the clock of
 * the host from the first to the end of the last.
 *
 * A process that has opened a GPU cannot be forked: everything happens in
 * worlds of their own, this in one of one rank.
 */
#include "tools/bench/bench_gpu.h"
#include "tools/bench/bench_cuda.h"
#include "tools/bench/bench_lab.h"
#include "tools/bench/bench_life.h"
#include "tools/bench/bench_operator_list.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    COPY = 64 << 20, /* floats that are copied */
    CHECKED = 64,    /* floats that are compared */
    E26 = 1 << 26,
};

/* Each moves a quarter of a gigabyte or more: no cache holds it. */
static const struct bench_operator list[] = {
    {"gemm-4096", FSDP_OP_GEMM, 0, "ac cb | ab", {4096, 4096, 4096}, {0}},
    {"gemm-8192", FSDP_OP_GEMM, 0, "ac cb | ab", {8192, 8192, 8192}, {0}},
    {"gemm-dx-4096", FSDP_OP_GEMM, 1, "ac cb | ab", {4096, 4096, 4096}, {0}},
    {"grad-4096",
     FSDP_OP_GEMM_GRAD,
     0,
     "ca cb | ab",
     {4096, 4096, 4096, 1},
     {0}},
    {"attention",
     FSDP_OP_ATTENTION,
     0,
     "abcd3 | abcd abc2",
     {8, 1024, 12, 64},
     {0.1f}},
    {"attention-backward",
     FSDP_OP_ATTENTION_BACKWARD,
     0,
     "abcd3 abcd abc2 abcd | abcd3",
     {8, 1024, 12, 64},
     {0.1f}},
    {"fill", FSDP_OP_FILL, 0, "| a", {E26}, {1.0f}},
    {"scale", FSDP_OP_SCALE, 0, "a | =0", {E26}, {1.0f}},
    {"add", FSDP_OP_ADD, 0, "a a | a", {E26}, {0}},
    {"bias", FSDP_OP_BIAS, 0, "ab b | ab", {65536, 1024}, {0}},
    {"column-sum", FSDP_OP_COLUMN_SUM, 0, "ab | b", {65536, 1024, 1}, {0}},
    {"relu", FSDP_OP_RELU, 0, "a | a", {E26}, {0}},
    {"relu-backward", FSDP_OP_RELU_BACKWARD, 0, "a a | a", {E26}, {0}},
    {"gelu", FSDP_OP_GELU, 0, "a | a", {E26}, {0}},
    {"gelu-backward", FSDP_OP_GELU_BACKWARD, 0, "a a | a", {E26}, {0}},
    {"norm", FSDP_OP_NORM, 0, "ab b b | ab a2", {65536, 1024}, {1e-5f}},
    {"norm-backward",
     FSDP_OP_NORM_BACKWARD,
     0,
     "ab b a2 ab | ab",
     {65536, 1024},
     {0}},
    {"norm-grad",
     FSDP_OP_NORM_GRAD,
     0,
     "ab a2 ab | b b",
     {65536, 1024, 1},
     {0}},
    {"embedding",
     FSDP_OP_EMBEDDING,
     0,
     "a db cb | ab",
     {65536, 1024, 1024, 256},
     {0}},
    {"mse", FSDP_OP_MSE, 0, "ab ab | a ab", {65536, 1024}, {1.0f}},
    {"cross-entropy",
     FSDP_OP_CROSS_ENTROPY,
     0,
     "ab a | a ab",
     {65536, 1024},
     {1.0f}},
    {"sgd", FSDP_OP_SGD, 0, "a a | =0", {E26}, {1e-9f, 0.1f}},
    {"momentum",
     FSDP_OP_MOMENTUM,
     0,
     "a a a | =0 =2",
     {E26},
     {1e-9f, 0.1f, 0.9f}},
    {"adamw",
     FSDP_OP_ADAMW,
     0,
     "a a a a | =0 =2 =3",
     {E26},
     {1e-9f, 0.1f, 0.9f, 0.999f, 1e-8f, 0.5f, 0.5f}},
};
enum {
    N_LIST = sizeof(list) / sizeof(list[0])
};

/* The results of the rank: seconds of a run. */
struct found {
    bool done, has_base;
    char trouble[160];
};

struct trial {
    struct bench_plan *plan;
    const struct bench_engine *engine;
    const struct fsdp_device *device;
    struct fsdp_stream *stream;
    struct bench_driver driver;
    struct bench_cublas *cublas;
    void *copy[2];
    uint64_t copy_bytes;
    bool copy_noted;
    struct found *found; /* [N_LIST] */
    double *seconds;     /* [N_LIST][2][samples]: it, and what is beside it */
};

/* Small ones have the same form; ids stay within bounds. */
static struct bench_operator shape(const struct bench_plan *plan, int i)
{
    struct bench_operator b = list[i];

    if (!plan->small) {
        return b;
    }
    if (b.kind == FSDP_OP_GEMM || b.kind == FSDP_OP_GEMM_GRAD) {
        b.dim[0] = 64;
        b.dim[1] = 48;
        b.dim[2] = 80;
    } else if (b.kind == FSDP_OP_ATTENTION ||
               b.kind == FSDP_OP_ATTENTION_BACKWARD) {
        b.dim[0] = b.dim[2] = 1;
        b.dim[1] = 32;
    } else if (b.dim[1] > 0) {
        b.dim[0] = 64;
        b.dim[1] = 256;
    } else {
        b.dim[0] = 4096;
    }
    return b;
}

static void name_of(const struct bench_plan *plan, const char *label, int i,
                    char name[BENCH_NAME_BYTES])
{
    snprintf(name, BENCH_NAME_BYTES, "gpu%s.%s.%.40s",
             plan->small ? "-small" : "", i < 0 ? "copy" : list[i].name, label);
}

/* ---- In the rank ------------------------------------------------------- */

/* Seconds of one run, of `repeat`. op NULL: a copy. */
static int timed(struct trial *t, const struct fsdp_op *op, bool cublas,
                 uint32_t repeat, double *out)
{
    const struct fsdp_device *d = t->device;
    double begin;

    FSDP_TRY(d->sync(d->self, NULL));
    begin = bench_now();
    for (uint32_t i = 0; i < repeat; i++) {
        if (cublas) {
            if (!bench_cublas_run(t->cublas, op)) {
                return FSDP_ERR_DEVICE;
            }
        } else if (op) {
            FSDP_TRY(d->run(d->self, t->stream, op));
        } else {
            FSDP_TRY(d->copy(d->self, t->stream, t->copy[1], t->copy[0],
                             t->copy_bytes));
        }
    }
    if (cublas && t->driver.synchronize() != 0) {
        return FSDP_ERR_DEVICE;
    }
    FSDP_TRY(d->sync(d->self, t->stream));
    *out = (bench_now() - begin) / repeat;
    return FSDP_OK;
}

/* As many as take 50 ms. */
static int repeats(struct trial *t, const struct fsdp_op *op, bool cublas,
                   uint32_t *out)
{
    double once = 0;

    FSDP_TRY(timed(t, op, cublas, 1, &once)); /* warms up */
    FSDP_TRY(timed(t, op, cublas, 1, &once));
    *out = once < 0.05 ? (uint32_t)(0.05 / (once + 1e-6)) + 1 : 1;
    *out = t->plan->small ? 1 : *out;
    return FSDP_OK;
}

/* The results of cuBLAS are nearly the same, which shows that it was given the
 * same shapes. */
static int compare(struct trial *t, const struct fsdp_op *op, char *trouble,
                   size_t room)
{
    const struct fsdp_device *d = t->device;
    float own[CHECKED];
    float other[CHECKED];
    double ignored;

    FSDP_TRY(timed(t, op, false, 1, &ignored));
    FSDP_TRY(d->copy(d->self, NULL, own, op->out[0].p, sizeof(own)));
    FSDP_TRY(timed(t, op, true, 1, &ignored));
    FSDP_TRY(d->copy(d->self, NULL, other, op->out[0].p, sizeof(other)));
    for (int i = 0; i < CHECKED; i++) {
        if (!(fabsf(own[i] - other[i]) <= 1e-3f * fabsf(own[i]))) {
            snprintf(trouble, room, "element %d is %.9g, and cuBLAS says %.9g",
                     i, (double)own[i], (double)other[i]);
            return FSDP_ERR_MISMATCH;
        }
    }
    return FSDP_OK;
}

static int take_samples(struct trial *t, int i, const struct fsdp_op *op)
{
    bool product = bench_cublas_takes(op);
    bool cublas = product && t->cublas;
    bool flops = bench_operator_flops(&list[i]) > 0;
    uint32_t n = t->plan->report.samples;
    double *own = t->seconds + (size_t)i * 2 * n;
    struct found *f = &t->found[i];
    uint32_t repeat = 1;
    uint32_t other = 1;

    f->has_base = cublas || !flops;
    if (cublas) {
        FSDP_TRY(compare(t, op, f->trouble, sizeof(f->trouble)));
    }
    FSDP_TRY(repeats(t, op, false, &repeat));
    if (f->has_base) {
        FSDP_TRY(repeats(t, cublas ? op : NULL, cublas, &other));
    }
    for (uint32_t k = 0; k < n; k++) {
        FSDP_TRY(timed(t, op, false, repeat, &own[k]));
        if (f->has_base) {
            FSDP_TRY(timed(t, cublas ? op : NULL, cublas, other, &own[n + k]));
        }
    }
    f->done = true;
    return FSDP_OK;
}

static int try_operator(struct trial *t, int i)
{
    struct bench_operator b = shape(t->plan, i);
    struct fsdp_op host = {.size = 0};
    struct fsdp_op op = {.size = 0};
    int status = bench_operator_make(&b, &host);

    if (status == FSDP_OK) {
        status = bench_operator_give(&host, t->device, &op);
    }
    bench_operator_release(&host);
    if (status == FSDP_OK) {
        status = take_samples(t, i, &op);
    }
    bench_operator_take_back(&op, t->device);
    return status == FSDP_ERR_UNSUPPORTED ? FSDP_OK : status;
}

static int open_trial(struct trial *t, const struct bench_lab *lab)
{
    const struct fsdp_device *d = lab->env.device;
    struct fsdp_op fill = {.size = sizeof(fill),
                           .kind = FSDP_OP_FILL,
                           .unit = FSDP_NO_UNIT,
                           .n_out = 1};

    t->device = d;
    FSDP_TRY(d->stream_open(d->self, "bench", &t->stream));
    for (int i = 0; i < 2; i++) {
        FSDP_TRY(d->alloc(d->self, t->copy_bytes, &t->copy[i]));
        fill.dim[0] = t->copy_bytes / sizeof(float);
        fill.out[0] = (struct fsdp_out){t->copy[i], t->copy_bytes};
        FSDP_TRY(d->run(d->self, NULL, &fill));
    }
    if (bench_driver_open(&t->driver)) {
        t->cublas = bench_cublas_open();
    }
    if (!t->cublas) {
        fprintf(stderr, "cuBLAS was not found, or does not start: products "
                        "have nothing beside them\n");
    }
    return FSDP_OK;
}

static int in_rank(void *context, struct world_rank *rank)
{
    struct trial t = *(struct trial *)context;
    struct bench_lab lab;
    char token = 0;
    char all[WORLD_MAX_RANKS];
    int status = bench_lab_open(&lab, t.engine->engine);
    int wrong = -1;
    int i = 0;

    if (status == FSDP_OK) {
        status = open_trial(&t, &lab);
    }
    for (; i < N_LIST && status == FSDP_OK; i++) {
        char name[BENCH_NAME_BYTES];
        name_of(t.plan, t.engine->label, i, name);
        if (bench_wants(&t.plan->report, name)) {
            bench_progress(&t.plan->report, name);
            status = try_operator(&t, i);
            if (status == FSDP_ERR_MISMATCH) { /* the others may be right */
                wrong = wrong < 0 ? i : wrong;
                status = FSDP_OK;
            }
            /* A sign of life, for the world's watchdog. */
            (void)rank->exchange(rank->exchange_self, &token, 1, all);
        }
    }
    if (status == FSDP_OK && wrong >= 0) {
        status = FSDP_ERR_MISMATCH;
        i = wrong + 1;
    }
    if (status != FSDP_OK) {
        const char *trouble = i > 0 ? t.found[i - 1].trouble : "";
        snprintf(rank->error->message, sizeof(rank->error->message),
                 "%s: %.160s", i > 0 ? list[i - 1].name : "opening",
                 trouble[0]             ? trouble
                 : lab.error.message[0] ? lab.error.message
                                        : fsdp_status_text(status));
    }
    bench_cublas_close(t.cublas);
    if (t.device) {
        for (i = 0; i < 2; i++) {
            t.device->free(t.device->self, t.copy[i]);
        }
        t.device->stream_close(t.device->self, t.stream);
    }
    bench_lab_close(&lab);
    return status;
}

/* ---- Outside ----------------------------------------------------------- */

static void note(struct trial *t, int i)
{
    uint32_t n = t->plan->report.samples;
    double *own = t->seconds + (size_t)i * 2 * n;
    double *base = own + n;
    struct bench_operator b = shape(t->plan, i);
    double flops = bench_operator_flops(&b);
    double work = flops;
    struct fsdp_op op = {.size = 0};
    char name[BENCH_NAME_BYTES];
    char more[BENCH_NAME_BYTES];

    if (!(flops > 0)) {
        work = bench_operator_make(&b, &op) == FSDP_OK
                   ? bench_operator_bytes(&op)
                   : 0.0;
        bench_operator_release(&op);
    }
    for (uint32_t k = 0; k < n; k++) {
        own[k] = work / own[k] * 1e-9;
        base[k] =
            (flops > 0 ? work : 2.0 * (double)t->copy_bytes) / base[k] * 1e-9;
    }
    if (!(flops > 0) && !t->copy_noted) {
        name_of(t->plan, t->engine->label, -1, name);
        bench_add(&t->plan->report, name, "GB/s", base, n, NULL, NULL);
        t->copy_noted = true;
    }
    name_of(t->plan, t->engine->label, i, name);
    bench_add(&t->plan->report, name, flops > 0 ? "GFLOP/s" : "GB/s", own, n,
              t->found[i].has_base ? base : NULL,
              flops > 0 ? "cuBLAS" : "a copy");
    if (t->found[i].has_base) {
        for (uint32_t k = 0; k < n; k++) {
            base[k] = own[k] / base[k];
        }
        snprintf(more, sizeof(more), "%.80s.%s", name,
                 flops > 0 ? "of-cublas" : "of-copy");
        bench_add(&t->plan->report, more, "ratio", base, n, NULL, NULL);
    }
}

static int measure_operators(struct bench_plan *plan,
                             const struct bench_engine *engine)
{
    uint32_t n = plan->report.samples;
    size_t bytes =
        N_LIST * (sizeof(struct found) + 2 * (size_t)n * sizeof(double));
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct trial t = {.plan = plan,
                      .engine = engine,
                      .copy_bytes =
                          sizeof(float) * (plan->small ? 4096 : (uint64_t)COPY),
                      .seconds = memory};
    int status;

    if (memory == MAP_FAILED) {
        return FSDP_ERR_NOMEM;
    }
    t.found = (struct found *)(void *)(t.seconds + (size_t)N_LIST * 2 * n);
    status = bench_life_world(1, in_rank, &t, &plan->error);
    /* Results that were measured before a failure are kept. */
    for (int i = 0; i < N_LIST; i++) {
        if (t.found[i].done) {
            note(&t, i);
        }
    }
    munmap(memory, bytes);
    return status;
}

/* ---- The part ---------------------------------------------------------- */

static bool wants_operators(const struct bench_plan *plan, const char *label)
{
    char name[BENCH_NAME_BYTES];
    bool any = false;

    for (int i = 0; i < N_LIST; i++) {
        name_of(plan, label, i, name);
        any = any || bench_wants(&plan->report, name);
    }
    return any;
}

/* Models are measured also where operators failed: GPUs are paid by the hour.
 * The first failure is told. */
int bench_gpu(struct bench_plan *plan)
{
    struct bench_failure failure = {0};

    for (uint32_t e = 0; e < plan->n_engines; e++) {
        const struct bench_engine *engine = &plan->engine[e];
        if (engine->place == FSDP_PLACE_CUDA) {
            if (wants_operators(plan, engine->label)) {
                bench_failed(plan, &failure, measure_operators(plan, engine));
            }
            bench_failed(plan, &failure, bench_gpu_steps(plan, engine));
        }
    }
    return bench_first_failure(plan, &failure);
}

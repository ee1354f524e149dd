/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_cuda.c - the GPU's driver and cuBLAS, by their names.
 */
#include "tools/bench/bench_cuda.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ISO C has no cast from an object to a function. */
static bool look_up(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);

    memcpy(function, &symbol, sizeof(symbol));
    return symbol != NULL;
}

bool bench_driver_open(struct bench_driver *driver)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);

    *driver = (struct bench_driver){0};
    return library && look_up(library, "cuMemGetInfo_v2", &driver->memory) &&
           look_up(library, "cuDeviceGetCount", &driver->devices) &&
           look_up(library, "cuCtxSynchronize", &driver->synchronize) &&
           look_up(library, "cuCtxGetDevice", &driver->current) &&
           look_up(library, "cuDeviceGetName", &driver->name);
}

double bench_driver_taken(const struct bench_driver *driver)
{
    size_t left = 0;
    size_t total = 0;

    return driver->memory && driver->memory(&left, &total) == 0
               ? (double)(total - left)
               : 0.0;
}

double bench_driver_left(const struct bench_driver *driver)
{
    size_t left = 0;
    size_t total = 0;

    return driver->memory && driver->memory(&left, &total) == 0 ? (double)left
                                                                : 0.0;
}

void bench_driver_name(const struct bench_driver *driver, char *out,
                       size_t room)
{
    int device = 0;

    snprintf(out, room, "unknown");
    if (driver->name && driver->current && driver->current(&device) == 0) {
        (void)driver->name(out, (int)room, device);
    }
}

/* ---- cuBLAS, in its own words ------------------------------------------ */

enum {
    NO_TRANS = 0,
    TRANS = 1,
    PEDANTIC_MATH = 2,
};

typedef int sgemm(void *handle, int trans_a, int trans_b, int m, int n, int k,
                  const float *alpha, const float *a, int lda, const float *b,
                  int ldb, const float *beta, float *c, int ldc);

struct bench_cublas {
    void *handle;
    int (*destroy)(void *handle);
    sgemm *run;
};

struct bench_cublas *bench_cublas_open(void)
{
    static const char *const names[] = {"libcublas.so.13", "libcublas.so.12",
                                        "libcublas.so"};
    struct bench_cublas *x = calloc(1, sizeof(*x));
    int (*create)(void **handle) = NULL;
    int (*set_mode)(void *handle, int mode) = NULL;
    void *library = NULL;

    for (size_t i = 0; i < sizeof(names) / sizeof(*names) && !library; i++) {
        library = dlopen(names[i], RTLD_NOW);
    }
    if (x && library && look_up(library, "cublasCreate_v2", &create) &&
        look_up(library, "cublasSetMathMode", &set_mode) &&
        look_up(library, "cublasDestroy_v2", &x->destroy) &&
        look_up(library, "cublasSgemm_v2", &x->run) &&
        create(&x->handle) == 0) {
        if (set_mode(x->handle, PEDANTIC_MATH) == 0) {
            return x;
        }
        x->destroy(x->handle);
    }
    free(x);
    return NULL;
}

void bench_cublas_close(struct bench_cublas *x)
{
    if (x) {
        x->destroy(x->handle);
        free(x);
    }
}

bool bench_cublas_takes(const struct fsdp_op *op)
{
    return op->kind == FSDP_OP_GEMM ||
           (op->kind == FSDP_OP_GEMM_GRAD && op->dim[3] == 1);
}

/* cuBLAS counts columns first, so that for it the product is the transposed
 * one, b' a'. */
bool bench_cublas_run(struct bench_cublas *x, const struct fsdp_op *op)
{
    static const float one = 1.0f;
    static const float zero = 0.0f;
    int m = (int)op->dim[0];
    int n = (int)op->dim[1];
    int k = (int)op->dim[2];
    bool grad = op->kind == FSDP_OP_GEMM_GRAD;
    bool turned = (op->flags & FSDP_OP_TRANSPOSE_B) != 0;

    return x->run(x->handle, turned ? TRANS : NO_TRANS, grad ? TRANS : NO_TRANS,
                  n, m, k, &one, op->in[1].p, turned ? k : n, op->in[0].p,
                  grad ? m : k, &zero, op->out[0].p, n) == 0;
}

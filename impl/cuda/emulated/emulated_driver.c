/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulated_driver.c - TEST ONLY: what `fsdp-cts bench gpu` asks of the driver
 * (libcuda.so.1) and of cuBLAS (libcublas.so.13), in one library with both
 * names. FSDP_EMULATED_PLUGIN is the path of the plug-in that has the GPU's
 * memory.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BAD = 1,
    NO_TRANS = 0,
    PEDANTIC_MATH = 2,
};

/* NOLINTBEGIN(readability-identifier-naming): the names are of others. */
int cuMemGetInfo_v2(size_t *free_bytes, size_t *total);
int cuDeviceGetCount(int *count);
int cuCtxSynchronize(void);
int cuCtxGetDevice(int *device);
int cuDeviceGetName(char *name, int bytes, int device);
int cublasCreate_v2(void **handle);
int cublasDestroy_v2(void *handle);
int cublasSetMathMode(void *handle, int mode);
int cublasSgemm_v2(void *handle, int trans_a, int trans_b, int m, int n, int k,
                   const float *alpha, const float *a, int lda, const float *b,
                   int ldb, const float *beta, float *c, int ldc);
/* NOLINTEND(readability-identifier-naming) */

/* A function of the plug-in that is loaded already. */
static int look_up(const char *name, void *function)
{
    const char *path = getenv("FSDP_EMULATED_PLUGIN");
    void *plugin = path ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : NULL;
    void *symbol = plugin ? dlsym(plugin, name) : NULL;

    memcpy(function, &symbol, sizeof(symbol));
    return symbol ? 0 : BAD;
}

int cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    size_t (*taken)(void);
    size_t (*room)(void);

    if (look_up("emulated_memory_taken", &taken) != 0 ||
        look_up("emulated_memory_room", &room) != 0) {
        return BAD;
    }
    *total = room();
    *free_bytes = *total - taken();
    return 0;
}

int cuDeviceGetCount(int *count)
{
    const char *gpus = getenv("FSDP_EMULATED_GPUS");

    *count = gpus ? (int)strtol(gpus, NULL, 10) : 8;
    return 0;
}

/* Nothing is ever under way. */
int cuCtxSynchronize(void)
{
    return 0;
}

int cuCtxGetDevice(int *device)
{
    *device = 0;
    return 0;
}

int cuDeviceGetName(char *name, int bytes, int device)
{
    snprintf(name, (size_t)bytes, "Emulated %d", device);
    return 0;
}

int cublasCreate_v2(void **handle)
{
    *handle = calloc(1, sizeof(int));
    return *handle ? 0 : BAD;
}

int cublasDestroy_v2(void *handle)
{
    free(handle);
    return 0;
}

int cublasSetMathMode(void *handle, int mode)
{
    *(int *)handle = mode;
    return mode == PEDANTIC_MATH ? 0 : BAD;
}

/* Columns first; in double, so that no other product has its bits. */
int cublasSgemm_v2(void *handle, int trans_a, int trans_b, int m, int n, int k,
                   const float *alpha, const float *a, int lda, const float *b,
                   int ldb, const float *beta, float *c, int ldc)
{
    const char *fault = getenv("FSDP_EMULATED_FAULT");
    double wrong = fault && strcmp(fault, "cublas-wrong") == 0 ? 1.01 : 1.0;
    void (*open)(void);
    void (*close)(void);

    if (*(int *)handle != PEDANTIC_MATH || *alpha != 1.0f || *beta != 0.0f ||
        look_up("emulated_memory_open", &open) != 0 ||
        look_up("emulated_memory_close", &close) != 0) {
        return BAD;
    }
    open();
    for (int j = 0; j < n; j++) {
        for (int i = 0; i < m; i++) {
            double sum = 0.0;

            for (int t = 0; t < k; t++) {
                sum +=
                    (double)a[trans_a == NO_TRANS ? t * lda + i : i * lda + t] *
                    (double)b[trans_b == NO_TRANS ? j * ldb + t : t * ldb + j];
            }
            c[j * ldc + i] = (float)(sum * wrong);
        }
    }
    close();
    return 0;
}

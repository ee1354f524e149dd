/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_cuda.h - asks the GPU's driver and cuBLAS, both of which are looked up
 * at run time: the program itself needs neither.
 *
 * All functions are about the GPU that an engine of this process has opened.
 */
#ifndef FSDP_CTS_BENCH_CUDA_H
#define FSDP_CTS_BENCH_CUDA_H

#include <fsdp/op.h>
#include <stdbool.h>
#include <stddef.h>

struct bench_driver {
    int (*memory)(size_t *free, size_t *total);
    int (*devices)(int *count);
    int (*synchronize)(void);
    int (*current)(int *device);
    int (*name)(char *name, int bytes, int device);
};

/* False if there is no driver. */
bool bench_driver_open(struct bench_driver *driver);
/* Bytes of the GPU that are taken, by any process; 0: the driver did not
 * say. */
double bench_driver_taken(const struct bench_driver *driver);
/* Bytes that are left; 0: the driver did not say. */
double bench_driver_left(const struct bench_driver *driver);

/* The name of the GPU; "unknown" if the driver does not say. */
void bench_driver_name(const struct bench_driver *driver, char *out,
                       size_t room);

struct bench_cublas;
/* In f32 with no shorter format in between (CUBLAS_PEDANTIC_MATH). NULL:
 * there is no such library, or it cannot be used. */
struct bench_cublas *bench_cublas_open(void);
void bench_cublas_close(struct bench_cublas *cublas); /* NULL is allowed */
/* Whether it can run an operator: GEMM, or GEMM_GRAD of one grain. */
bool bench_cublas_takes(const struct fsdp_op *op);
/* Enqueues an operator; returns only whether cuBLAS accepted it. */
bool bench_cublas_run(struct bench_cublas *cublas, const struct fsdp_op *op);

#endif

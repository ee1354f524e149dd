/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_testing.h - what tests of the CUDA device share: an env of one rank,
 * and trials of operators on the device, whose bits are compared with those of
 * the plain device. The same tests run on a GPU (label gpu) and, linked with
 * the emulation, anywhere.
 */
#ifndef FSDP_CTS_CUDA_TESTING_H
#define FSDP_CTS_CUDA_TESTING_H

#include "cuda/cuda_env.h"
#include "host/host_ops_testing.h"
#include "testing/unit_testing.h"

#include <cuda_runtime_api.h>

static struct fsdp_error cuda_error;
static struct fsdp_env cuda_env;

static int exchange_alone(void *self, const void *mine, uint64_t bytes,
                          void *all)
{
    (void)self;
    memcpy(all, mine, bytes);
    return FSDP_OK;
}

static void abort_alone(void *self, int32_t status)
{
    (void)self;
    (void)status;
}

/* Opens a rank that is alone; returns what cuda_open does. */
static inline int open_alone(void)
{
    static const uint32_t extent[] = {1, 1};
    static const char *const name[] = {"replicate", "shard"};
    static const struct fsdp_mesh mesh = {sizeof(mesh), 2, name, extent};
    static const struct fsdp_comm comm = {.size = sizeof(comm),
                                          .abort = abort_alone};

    cuda_error = (struct fsdp_error){0};
    cuda_env = (struct fsdp_env){.size = sizeof(cuda_env),
                                 .world = 1,
                                 .mesh = &mesh,
                                 .comm = &comm,
                                 .error = &cuda_error,
                                 .exchange = exchange_alone};
    return cuda_open(&cuda_env);
}

/* For main: 77, which CTest takes as skipped, if there are too few GPUs. */
static inline int skip_without_gpus(int wanted)
{
    int count = 0;

    if (open_alone() != FSDP_OK) {
        printf("skipped: %s\n", cuda_error.message);
        return 77;
    }
    cuda_close(&cuda_env);
    if (cudaGetDeviceCount(&count) != cudaSuccess || count < wanted) {
        printf("skipped: %d GPUs, %d are needed\n", count, wanted);
        return 77;
    }
    return 0;
}

static inline int skip_without_gpu(void)
{
    return skip_without_gpus(1);
}

static inline int open_device(void **state)
{
    (void)state;
    return open_alone();
}

static inline int close_device(void **state)
{
    (void)state;
    cuda_close(&cuda_env);
    return 0;
}

/* The same place in other memory. */
static inline void *moved(const void *p, const float *from, float *to)
{
    return p ? to + ((const float *)p - from) : NULL;
}

static inline int run_on_device(const struct trial *t, float *memory,
                                uint64_t n)
{
    const struct fsdp_device *d = cuda_env.device;
    struct fsdp_op op = t->op;
    void *there = NULL;
    int status;

    assert_int_equal(d->alloc(d->self, n * sizeof(float), &there), FSDP_OK);
    assert_int_equal(d->copy(d->self, NULL, there, memory, n * sizeof(float)),
                     FSDP_OK);
    for (uint32_t i = 0; i < op.n_in; i++) {
        op.in[i].p = moved(op.in[i].p, memory, there);
    }
    for (uint32_t o = 0; o < op.n_out; o++) {
        op.out[o].p = moved(op.out[o].p, memory, there);
    }
    status = d->run(d->self, NULL, &op);
    if (status == FSDP_OK) {
        status = d->copy(d->self, NULL, memory, there, n * sizeof(float));
    }
    d->free(d->self, there);
    return status;
}

/* A range by itself on the device, NULL if it is empty; `end`: its last byte is
 * the last one of the allocation. */
struct alone {
    void *allocation;
    unsigned char *p;
};

static inline struct alone alone(const void *range, uint64_t bytes, bool end)
{
    const struct fsdp_device *d = cuda_env.device;
    uint64_t all = (bytes + 255) / 256 * 256; /* as the runtime rounds */
    struct alone a = {NULL, NULL};

    if (bytes > 0) {
        assert_int_equal(d->alloc(d->self, all, &a.allocation), FSDP_OK);
        a.p = (unsigned char *)a.allocation + (end ? all - bytes : 0);
        assert_int_equal(d->copy(d->self, NULL, a.p, range, bytes), FSDP_OK);
    }
    return a;
}

/* Runs the operator with each range in an allocation of its own, so that memory
 * beyond a range is not there; its results replace those in memory. */
static inline void run_apart(const struct trial *t)
{
    const struct fsdp_device *d = cuda_env.device;
    struct fsdp_op op = t->op;
    struct alone in[FSDP_OP_MAX_IN] = {{NULL, NULL}};
    struct alone out[FSDP_OP_MAX_OUT] = {{NULL, NULL}};

    for (uint32_t i = 0; i < op.n_in; i++) {
        in[i] = alone(op.in[i].p, op.in[i].bytes, !t->aligned);
        op.in[i].p = in[i].p;
    }
    for (uint32_t o = 0; o < op.n_out; o++) {
        uint32_t i = 0;

        while (i < op.n_in && t->op.in[i].p != t->op.out[o].p) {
            i++;
        }
        if (i == op.n_in) {
            out[o] = alone(op.out[o].p, op.out[o].bytes, !t->aligned);
        }
        op.out[o].p = i == op.n_in ? out[o].p : in[i].p;
    }
    assert_int_equal(d->run(d->self, NULL, &op), FSDP_OK);
    for (uint32_t o = 0; o < op.n_out; o++) {
        assert_int_equal(d->copy(d->self, NULL, t->op.out[o].p, op.out[o].p,
                                 op.out[o].bytes),
                         FSDP_OK);
    }
    for (uint32_t i = 0; i < op.n_in; i++) {
        d->free(d->self, in[i].allocation);
    }
    for (uint32_t o = 0; o < op.n_out; o++) {
        d->free(d->self, out[o].allocation);
    }
}

/* All memory, guards and inputs too, is as the plain device leaves it; also if
 * each range lies by itself. */
static inline void try_on_device(struct trial *t)
{
    uint64_t shift = t->aligned ? 0 : random_bits() % 16;
    uint64_t n = lay_out(t, NULL, shift);
    float *want = malloc(n * sizeof(float));
    float *got = malloc(n * sizeof(float));
    float *apart = malloc(n * sizeof(float));

    assert_non_null(want);
    assert_non_null(got);
    assert_non_null(apart);
    for (uint64_t i = 0; i < n; i++) {
        want[i] = 12345.0f;
    }
    lay_out(t, want, shift);
    fill_inputs(t, want);
    memcpy(got, want, n * sizeof(float));
    memcpy(apart, want, n * sizeof(float));
    run_plain(t);
    lay_out(t, got, shift);
    assert_int_equal(run_on_device(t, got, n), FSDP_OK);
    check_same(t, SIMD_PORTABLE, got, want, n);
    if (t->data == DATA_PLAIN) {
        lay_out(t, apart, shift);
        run_apart(t);
        check_same(t, SIMD_PORTABLE, apart, want, n);
    }
    free(want);
    free(got);
    free(apart);
}

static inline void try_cuda(uint32_t kind, const char *ranges,
                            const uint64_t dim[5], const float *f, bool aligned,
                            unsigned int n_data)
{
    struct trial t = {
        .op = {.size = sizeof(t.op), .kind = kind, .unit = FSDP_NO_UNIT},
        .ranges = ranges,
        .aligned = aligned};
    int flags = kind == FSDP_OP_GEMM ? 2 : 1;

    memcpy(t.op.dim, dim, 5 * sizeof(*dim));
    memcpy(t.op.f, f, sizeof(t.op.f));
    for (int flag = 0; flag < flags; flag++) {
        t.op.flags = flag == 1 ? FSDP_OP_TRANSPOSE_B : 0;
        for (unsigned int data = 0; data < n_data; data++) {
            t.data = (enum data)data;
            try_on_device(&t);
        }
    }
}

#define TRY(kind, ranges, f, ...) \
    try_cuda(kind, ranges, (const uint64_t[5]){__VA_ARGS__}, f, false, N_DATA)

/* Where kernels may take vectors. */
#define TRY_ALIGNED(kind, ranges, f, ...) \
    try_cuda(kind, ranges, (const uint64_t[5]){__VA_ARGS__}, f, true, N_DATA)

/* Operators that take long: plain data alone. */
#define TRY_LARGE(kind, ranges, f, ...) \
    try_cuda(kind, ranges, (const uint64_t[5]){__VA_ARGS__}, f, true, 1)

#endif
